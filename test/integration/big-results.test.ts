/** Big results lie in memory that is used again (decision 0012): each host gets its own, whole, whatever happens beside it. */
import { expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { legacyHttp, legacyPipe, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const KIB = 1024
/** A text in which every 16 bytes say whose it is. */
const textOf = (nonce: string, length: number): string =>
  nonce
    .padEnd(16, '.')
    .repeat(Math.ceil(length / 16))
    .slice(0, length)

const startEcho = (kind: 'legacy http' | 'modern http'): Promise<TestGateway> =>
  startGateway({
    servers: {
      a: fake.of({
        kind,
        tools: ['x'],
        on: {
          'tools/call': async ({ params }) => {
            const { nonce, length, afterMs } = (params ?? {})['arguments'] as { nonce: string; length: number; afterMs: number }
            await new Promise((resolve) => setTimeout(resolve, afterMs))
            return { content: [{ type: 'text', text: textOf(nonce, length) }] }
          },
        },
      }),
    },
  })

const textIn = (result: JsonMap | undefined): string => ((result ?? {})['content'] as { text: string }[])[0]?.text ?? ''

test.each(['legacy http', 'modern http'] as const)(
  'big results of a %s server at once, some given up: every host gets its own, byte for byte',
  async (kind) => {
    await using gateway = await startEcho(kind)
    await using first = await legacyHttp.connect(gateway)
    await using second = await modernHttp.connect(gateway)
    await using third = await legacyPipe.connect(gateway)
    const hosts: Host[] = [first, second, third]
    let wrong = 0
    const call = async (host: Host, round: number): Promise<void> => {
      const nonce = Math.random().toString(36).slice(2)
      const length = Math.floor(60 * KIB + Math.random() * 400 * KIB)
      const args = { nonce, length, afterMs: Math.random() * 10 }
      const pending = host.begin('tools/call', { name: 'a__x', arguments: args })
      if (round % 5 === 4) return pending.cancel()
      const { result } = await pending.response
      if (textIn(result) !== textOf(nonce, length)) wrong++
    }
    for (let round = 0; round < 15; round++) await Promise.all([...hosts, ...hosts].map((host) => call(host, round)))
    expect(wrong).toBe(0)
    expect(gateway.running.context.bodies.freeBytes).toBeGreaterThan(0)
  },
)

test('several answers in one body of a server are not taken for one', async () => {
  await using gateway = await startEcho('legacy http')
  const bodies: ((body: string) => void)[] = []
  const ids: number[] = []
  const nonces: string[] = []
  gateway.fake('a').intercept = (_request, response, body) => {
    if (!body.includes('"tools/call"')) return false
    const { id, params } = JSON.parse(body) as { id: number; params: { arguments: { nonce: string } } }
    ids.push(id)
    nonces.push(params.arguments.nonce)
    bodies.push((text) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }
      response.writeHead(200, headers).end(text)
    })
    if (ids.length < 2) return true
    const answers = ids.map((each, at) => ({
      jsonrpc: '2.0',
      id: each,
      result: { content: [{ type: 'text', text: textOf(nonces[at] ?? '', 100 * KIB) }] },
    }))
    bodies[0]?.(JSON.stringify(answers))
    return true
  }
  await using host = await legacyHttp.connect(gateway)
  const calls = ['one', 'two'].map((nonce) => host.begin('tools/call', { name: 'a__x', arguments: { nonce } }))
  const texts = await Promise.all(calls.map(async ({ response }) => textIn((await response).result)))
  expect(texts).toEqual(['one', 'two'].map((nonce) => textOf(nonce, 100 * KIB)))
  expect(gateway.running.context.bodies.freeBytes).toBe(0)
})

/**
 * Long lines and events of servers lie in memory that is used again once the host has its answer (decision 0042). Whatever happens
 * beside it, slow hosts, hosts that cancel and hosts that go in the middle of an answer, every host gets its own, byte for byte.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { legacyHttp, legacyPipe, legacySse, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { attachSocket, startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { markedText, randomMark } from '../support/marked-text.ts'
import { slowRelay } from '../support/faults/slow-relay.ts'

const KIB = 1024
/** More than the kernel takes for a host that does not read. */
const HUGE_BYTES = 10_000 * KIB

interface Args {
  readonly nonce: string
  readonly length: number
  readonly afterMs: number
}

const startEcho = (kind: FakeKind, isStreamed: boolean): Promise<TestGateway> =>
  startGateway({
    servers: {
      a: fake.of({
        kind,
        tools: ['x'],
        on: {
          'tools/call': async (turn) => {
            const { nonce, length, afterMs } = (turn.params ?? {})['arguments'] as Args
            // What precedes the answer makes an event stream of it.
            if (isStreamed) turn.notify('notifications/message', { level: 'info', data: nonce })
            await new Promise((resolve) => setTimeout(resolve, afterMs))
            return { content: [{ type: 'text', text: markedText(nonce, length) }] }
          },
        },
      }),
    },
    host: { streamAfterMs: 60_000 },
    hostLimits: { maxQueuedBytes: 256 * KIB * KIB },
  })

/** A host on a socket that reads a little at a time. */
const slowPipe = async (gateway: TestGateway): Promise<TestGateway> => {
  const socket = await attachSocket(gateway)
  socket.on('data', () => {
    socket.pause()
    setTimeout(() => socket.resume(), 5)
  })
  return { ...gateway, openPipe: () => ({ input: socket, output: socket }) }
}

const textIn = (result: JsonMap | undefined): string => ((result ?? {})['content'] as { text: string }[])[0]?.text ?? ''
const argsOf = (length: number): Args => ({ nonce: randomMark(), length, afterMs: Math.random() * 10 })

const ROWS: readonly (readonly [FakeKind, boolean])[] = [
  ['legacy stdio', false],
  ['modern stdio', false],
  ['legacy sse', false],
  ['legacy http', true],
  ['modern http', true],
]

test.each(ROWS)(
  'long answers of a %s server (events: %s) reach fast, slow and leaving hosts whole',
  async (kind, isStreamed) => {
    await using gateway = await startEcho(kind, isStreamed)
    await using relay = await slowRelay(gateway.url)
    const behindRelay = { ...gateway, url: relay.url }
    const piped = await attachSocket(gateway)
    await using first = await legacyHttp.connect(gateway)
    await using second = await modernHttp.connect(gateway)
    await using third = await legacySse.connect(gateway)
    await using fourth = await legacyPipe.connect({ ...gateway, openPipe: () => ({ input: piped, output: piped }) })
    await using slow = await modernHttp.connect(behindRelay)
    await using slowEvents = await legacySse.connect(behindRelay)
    await using slowLines = await legacyPipe.connect(await slowPipe(gateway))
    let wrong = 0
    let right = 0
    const check = (result: JsonMap | undefined, { nonce, length }: Args): void => {
      if (textIn(result) === markedText(nonce, length)) right++
      else wrong++
    }
    const call = async (host: Host, length: number, isGivenUp = false): Promise<void> => {
      const args = argsOf(length)
      const pending = host.begin('tools/call', { name: 'a__x', arguments: args })
      if (isGivenUp) {
        pending.response.catch(() => undefined)
        return pending.cancel()
      }
      check((await pending.response).result, args)
    }
    const isOver = Promise.all(
      [slow, slowEvents, slowLines].map(async (host) => {
        for (let round = 0; round < 2; round++) await call(host, HUGE_BYTES)
      }),
    )
    const fast = [first, second, third, fourth]
    for (let round = 0; round < 10; round++) {
      const length = 60 * KIB + Math.random() * 600 * KIB
      await Promise.all([...fast, ...fast].map((host) => call(host, length, round % 5 === 4)))
      await leaveInTheMiddle(gateway)
    }
    await isOver
    expect({ wrong, right }).toEqual({ wrong: 0, right: 6 + 64 })
    expect(gateway.running.context.bodies.freeBytes).toBeGreaterThan(0)
  },
  60_000,
)

/** A modern host that reads the beginning of a long answer, and goes. */
const leaveInTheMiddle = async ({ url }: TestGateway): Promise<void> => {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'a__x',
      arguments: { ...argsOf(HUGE_BYTES), afterMs: 0 },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'leaver', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  })
  const socket = connect(Number(url.port), url.hostname)
  socket.write(
    `POST /mcp HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n` +
      `MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: a__x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const [begun] = (await once(socket, 'data')) as [Buffer]
  expect(begun.toString('latin1', 0, 15)).toBe('HTTP/1.1 200 OK')
  socket.destroy()
}

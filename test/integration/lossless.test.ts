/**
 * What goes in comes out, byte for byte: arguments to the server, structured content to the host, over every pair of transports
 * (BRIDGING 2.6). The exceptions that 2.6 names are cases of their own: `names.test.ts` (B167) and the projections.
 */
import { expect, test } from 'vitest'
import { documentFrom, randomFrom } from '../support/documents.ts'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import { everyTransport } from '../support/fake-host.ts'
import { KEY, MODERN } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

/** Documents in all pairs together. */
const DOCUMENTS = 20_000
/** So many of each pair hold a string of this size. */
const LARGE = 2
const LARGE_BYTES = 2 * 1024 * 1024
const AT_ONCE = 8

const pairs = everyTransport.flatMap((host) => everyFakeKind.map((kind) => ({ host, kind, name: `${host.name} × ${kind}` })))
const perPair = Math.ceil(DOCUMENTS / pairs.length)
const META = JSON.stringify({ [KEY.version]: MODERN, [KEY.capabilities]: {} })

/** Lines and events cannot hold a raw line end; JSON allows one between tokens, and there it may become a space. */
test.each(pairs)(
  'B018 B019 B022 $name: documents arrive as they were sent, both ways',
  { timeout: 120_000 },
  async ({ host: row, kind, name }) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['echo'] }) } })
    await using host = await row.connect(gateway)
    const a = gateway.fake('a')
    const sent = new Map<string, string>()
    a.on('tools/call', (turn) => {
      const key = /"arguments":\{"n":(\d+)/.exec(turn.raw)?.[1] ?? ''
      const document = sent.get(key) ?? ''
      if (!turn.raw.includes(`"arguments":{"n":${key},"doc":${document}}`)) return { content: [], isError: true }
      const more = kind.startsWith('modern') ? '"resultType":"complete",' : ''
      turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"result":{${more}"content":[],"structuredContent":{"doc":${document}}}}`)
      a.forget()
      return undefined
    })
    const random = randomFrom(Buffer.from(name).reduce((seed, byte) => Math.imul(seed, 31) + byte, 7))
    const meta = row.era === 'modern' ? `,"_meta":${META}` : ''
    const exchange = async (n: number, bytes: number): Promise<void> => {
      const document = documentFrom(random, bytes)
      sent.set(String(n), document)
      const params = `{"name":"a__echo","arguments":{"n":${n},"doc":${document}}${meta}}`
      const text = `{"jsonrpc":"2.0","id":"d${n}","method":"tools/call","params":${params}}`
      const raw = await host.sendRaw(text, `d${n}`).raw
      if (!raw.includes(`"structuredContent":{"doc":${document}}`))
        expect.fail(`document ${n} was changed:\n${document.slice(0, 500)}\n${raw.slice(0, 1000)}`)
      sent.delete(String(n))
    }
    let next = 0
    for (; next < LARGE; next++) await exchange(next, LARGE_BYTES)
    const work = async (): Promise<void> => {
      for (let n = next++; n < perPair; n = next++) await exchange(n, 0)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    expect(next).toBeGreaterThanOrEqual(perPair)
  },
)

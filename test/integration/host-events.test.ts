/** Events to hosts: what is written together in one turn of the event loop, and what alone. */
import { expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { legacyHttp, legacySse, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'
import { markedText, randomMark } from '../support/marked-text.ts'

/** Up to here an event is written together with others; the frame of an answer takes some 200 bytes of it. */
const GATHERED_BYTES = 64 * 1024

/** Each answer comes behind progress, so that the host gets a stream of events. */
const start = (host: GatewaySetup['host'] = {}): Promise<TestGateway> =>
  startGateway({
    host,
    servers: {
      a: fake.of({
        kind: 'legacy http',
        tools: ['x'],
        on: {
          'tools/call': (turn) => {
            const { mark = '', length = 0 } = (turn.params['arguments'] ?? {}) as { mark?: string; length?: number }
            turn.progress(1)
            return { content: [{ type: 'text', text: markedText(mark, length) }] }
          },
        },
      }),
    },
  })

const begin = (host: Host, mark: string, length: number) =>
  host.begin('tools/call', { name: 'a__x', arguments: { mark, length }, _meta: { progressToken: mark } })

const rightAnswer = async (host: Host, length: number): Promise<void> => {
  const mark = randomMark()
  const call = begin(host, mark, length)
  const content = ((await call.response).result as JsonMap)['content'] as { text: string }[]
  expect(content.map(({ text }) => text === markedText(mark, length))).toEqual([true])
}

test.each(
  [legacySse, legacyHttp, modernHttp].flatMap((transport) =>
    (['own', 'node'] as const).map((httpServer) => ({ ...transport, httpServer })),
  ),
)('B281 $name, $httpServer server: events of sizes around the one that is written alone come whole', async (row) => {
  await using gateway = await start({ httpServer: row.httpServer })
  await using host = await row.connect(gateway)
  const lengths = Array.from({ length: 48 }, (_, at) => (at % 3 === 0 ? 100 : GATHERED_BYTES - 500 + 11 * at))
  await Promise.all(lengths.map((length) => rightAnswer(host, length)))
})

test('F-21 hosts that break their streams with answers under way, first of all, harm no other host', async () => {
  await using gateway = await start()
  await using well = await legacySse.connect(gateway)
  for (let round = 0; round < 3; round++) {
    const sick = await legacySse.connect(gateway)
    const lost = Array.from({ length: 20 }, (_, at) => begin(sick, `lost${at}`, at % 2 === 0 ? 50 : 90_000).response)
    const answered = Promise.all([50, 90_000, 60_000].map((length) => rightAnswer(well, length)))
    await Promise.race(lost)
    await Promise.all([sick[Symbol.asyncDispose](), ...lost.map((response) => response.catch(() => undefined)), answered])
  }
  await rightAnswer(well, 200_000)
})

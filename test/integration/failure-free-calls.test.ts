/**
 * A call that succeeds creates no `Failure`: its stack trace would cost an eighth of the call. The engine counts how often the
 * constructor is entered.
 */
import { Session } from 'node:inspector'
import { expect, test } from 'vitest'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { everyTransport } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'

interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly { readonly functionName: string; readonly ranges: readonly { readonly count: number }[] }[]
  }[]
}

/** How many failures were created since it was asked last. */
const created = (session: Session): number => {
  let count = 0
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error !== null) throw error
    for (const { url, functions } of (coverage as Coverage).result) {
      if (!url.endsWith('/src/wire/message/failure.ts')) continue
      for (const { functionName, ranges } of functions) if (functionName === 'Failure') count += ranges[0]?.count ?? 0
    }
  })
  return count
}

/** Answers in an event stream where the transport has one: something precedes the response. */
const afterProgress = (turn: Turn) => {
  turn.notify('notifications/message', { level: 'info', data: 'x' })
  return { content: [] }
}
const plain = () => ({ content: [] })

const servers = Object.fromEntries(
  everyFakeKind.flatMap((kind) =>
    [plain, afterProgress].map((handle) => [
      `${kind.replace(' ', '-')}-${handle.name.toLowerCase()}`,
      fake.of({ kind, tools: ['t'], on: { 'tools/call': handle } }),
    ]),
  ),
)

test.each(everyTransport)('calls from a host over $name to servers of all transports create no failure', async ({ connect }) => {
  await using gateway = await startGateway({ servers })
  await using host = await connect(gateway)
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const counts: Record<string, number> = {}
  for (const server of Object.keys(servers)) {
    const call = () => host.call('tools/call', { name: `${server}__t`, arguments: {} })
    await call()
    created(session)
    for (let again = 0; again < 5; again++) await call()
    // The end of an event stream may be read after the response was relayed: another call follows it.
    await call()
    counts[server] = created(session)
  }
  session.post('Profiler.stopPreciseCoverage')
  session.disconnect()
  expect(counts).toEqual(Object.fromEntries(Object.keys(servers).map((server) => [server, 0])))
})

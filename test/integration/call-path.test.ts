/** Which files of the source a call enters on its way from the listener to the server; docs/architecture.md lists its stations. */
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import type { Profiler } from 'node:inspector'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MOST_STATIONS = 50
/** With the scanners, tables and counters that stations ask. Fewer is better. */
const MOST_FILES = 95

/** The files with a function that has run since the last time. */
const entered = (session: Session): ReadonlySet<string> => {
  let ran: Profiler.ScriptCoverage[] = []
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error
    ran = result.filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
  })
  return new Set(ran.flatMap(({ url }) => url.split(`${ROOT}src/`)[1]?.replace(/\?.*/, '') ?? []))
}

test('a call of 100 B passes the stations that the architecture page lists, 50 at most', async () => {
  // On a slow machine, reading the coverage takes longer than the period of the sweeper, which would then run during each call.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) } })
  await using host = await modernHttp.connect(gateway)
  const call = (): Promise<unknown> => host.call('tools/call', { name: 'a__x', arguments: { text: 'x'.repeat(100) } })
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  for (let warm = 0; warm < 5; warm++) await call()
  const ways: ReadonlySet<string>[] = []
  gateway.fake('a').on('tools/call', () => {
    ways.push(entered(session))
    return { content: [] }
  })
  for (let again = 0; again < 10; again++) {
    entered(session)
    await call()
  }
  session.disconnect()
  // Another timer that falls into one call does not fall into all of them.
  const files = ways.reduce((before, way) => new Set([...before].filter((file) => way.has(file))))
  const [, list = ''] =
    /### The files of a call\n[^]*?```text\n([^]*?)```/.exec(readFileSync(`${ROOT}docs/architecture.md`, 'utf8')) ?? []
  const stations = list.split('\n').flatMap((line) => /^[\w./-]+\.ts\b/.exec(line) ?? [])
  expect(stations.filter((file) => !files.has(file))).toEqual([])
  expect(stations.length).toBeGreaterThan(0)
  expect(stations.length).toBeLessThanOrEqual(MOST_STATIONS)
  expect([...files].length, [...files].toSorted().join('\n')).toBeLessThanOrEqual(MOST_FILES)
})

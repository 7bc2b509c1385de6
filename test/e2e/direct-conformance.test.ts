/** The reference server and the comparison of runs, before the gateway is measured with both. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compare, runConformance } from '../support/conformance.ts'
import type { ScenarioResult } from '../support/conformance.ts'
import { startServer } from '../support/processes.ts'
import type { ServerProcess } from '../support/processes.ts'

describe('the conformance suite directly against the reference server', () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await startServer('reference-server', 'http')
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('passes 33 of 33 scenarios of 2025-11-25', async () => {
    const results = await runConformance(server.url, '2025-11-25')
    expect(results).toHaveLength(33)
    expect(results.filter(({ passed }) => !passed)).toEqual([])
  })

  test('passes 50 of 50 scenarios of 2026-07-28', async () => {
    const results = await runConformance(server.url, '2026-07-28')
    expect(results).toHaveLength(50)
    expect(results.filter(({ passed }) => !passed)).toEqual([])
  })

  test('runs one scenario alone', async () => {
    const results = await runConformance(server.url, '2026-07-28', 'tools-call-with-progress')
    expect(results).toMatchObject([{ scenario: 'tools-call-with-progress', passed: true }])
  })

  test('a legacy server loses every modern scenario', async () => {
    await using legacy = await startServer('reference-server', 'http', '--era', 'legacy')
    const [direct, through] = await Promise.all(
      [server.url, legacy.url].map((url) => runConformance(url, '2026-07-28', 'server-stateless')),
    )
    expect(compare(direct ?? [], through ?? []).length).toBeGreaterThan(0)
  })
})

describe('compare', () => {
  const result = (scenario: string, ...statuses: ScenarioResult['checks'][number]['status'][]): ScenarioResult => ({
    scenario,
    passed: !statuses.includes('FAILURE'),
    checks: statuses.map((status) => ({ id: 'check', status })),
  })

  test('finds nothing in equal runs', () => {
    const run = [result('a', 'SUCCESS', 'WARNING', 'INFO', 'SKIPPED'), result('b', 'FAILURE')]
    expect(compare(run, run)).toEqual([])
  })

  test('finds a scenario that was not run, and one whose only difference is a new failure', () => {
    expect(compare([result('a', 'SUCCESS')], [])).toEqual([{ scenario: 'a', direct: 'passed', through: 'missing' }])
    expect(compare([result('a', 'SUCCESS')], [result('a', 'SUCCESS', 'FAILURE')])).toEqual([
      { scenario: 'a', direct: 'passed', through: 'failed' },
    ])
  })

  test('finds a check that is skipped, weaker or gone although the scenario passes', () => {
    expect(compare([result('a', 'SUCCESS', 'SUCCESS', 'SUCCESS')], [result('a', 'SKIPPED', 'WARNING')])).toEqual([
      { scenario: 'a', check: 'check', direct: 'SUCCESS', through: 'SKIPPED' },
      { scenario: 'a', check: 'check', direct: 'SUCCESS', through: 'WARNING' },
      { scenario: 'a', check: 'check', direct: 'SUCCESS', through: 'missing' },
    ])
  })

  test('forgives what is allowed and what fails directly', () => {
    expect(compare([result('a', 'SUCCESS'), result('b', 'SUCCESS', 'FAILURE')], [], ['a'])).toEqual([])
  })
})

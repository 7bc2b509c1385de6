/** The comparison of two runs of the conformance suite (test/support/conformance.ts). */
import { describe, expect, test } from 'vitest'
import { compare } from '../support/conformance.ts'
import type { ScenarioResult } from '../support/conformance.ts'

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

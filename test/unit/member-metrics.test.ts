import { expect, test } from 'vitest'
import { joinFamilies } from '../../src/admin/state/member-metrics.ts'
import { formatMetrics } from '../../src/observe/metrics/exposition.ts'

test('the series of several processes are one family, and a label says whose each is', () => {
  const family = (value: number) => ({
    type: 'gauge' as const,
    name: 'trunkline_sessions',
    help: 'Sessions.',
    samples: [{ labels: { era: 'legacy' }, value }],
  })
  const other = { type: 'counter' as const, name: 'calls', help: 'Calls.', samples: [{ labels: {}, value: 3 }] }
  const joined = joinFamilies([
    { worker: '1', families: [family(2)] },
    { worker: '2', families: [family(5), other] },
  ])
  expect(formatMetrics(joined, false)).toBe(`# HELP trunkline_sessions Sessions.
# TYPE trunkline_sessions gauge
trunkline_sessions{worker="1",era="legacy"} 2
trunkline_sessions{worker="2",era="legacy"} 5
# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{worker="2"} 3
`)
})

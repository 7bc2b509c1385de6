/** What the limit of descriptors leaves for connections, and that counting never throws. */
import { expect, test } from 'vitest'
import { connectionsWithin, openGauges } from '../../../src/host/limits/gauges.ts'

test.each([
  [undefined, Infinity],
  [64, 16],
  [128, 64],
  [256, 192],
  [1_024, 768],
  [4_096, 3_072],
  [20_000, 18_976],
])('F-29 of %s descriptors %i may be connections of hosts', (limit, connections) => {
  expect(connectionsWithin(limit)).toBe(connections)
})

test.runIf(process.platform === 'linux')('F-29 descriptors are counted, and their limit is known', () => {
  const gauges = openGauges()
  expect(gauges.maxDescriptors).toBeGreaterThan(0)
  expect(gauges.descriptors()).toBeGreaterThan(0)
  expect(gauges.descriptors()).toBeLessThan(1)
})

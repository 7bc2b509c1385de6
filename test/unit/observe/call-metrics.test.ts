/** What is counted of calls, and how many series there can be. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { CallMetrics } from '../../../src/observe/metrics/call-metrics.ts'
import type { CountedCall } from '../../../src/observe/metrics/call-metrics.ts'
import { formatMetrics } from '../../../src/observe/metrics/exposition.ts'
import { LIMIT_OPTIONS } from '../../../src/observe/metrics/limit-options.ts'

const call = (facts: Partial<CountedCall> = {}): CountedCall => ({
  ref: 7,
  method: 'tools/call',
  server: 'one',
  tool: 'one__a',
  outcome: 'ok',
  era: 'modern',
  seconds: 0.02,
  at: 1_700_000_000,
  ...facts,
})

const linesOf = (metrics: CallMetrics, isOpenMetrics = false): string[] =>
  formatMetrics(metrics.families, isOpenMetrics).split('\n')

test('of tools as many are told apart as series says, and all further ones are other', () => {
  let capped = 0
  const metrics = new CallMetrics(
    () => 3,
    () => capped++,
  )
  for (let at = 0; at < 50; at++) metrics.count(call({ tool: `one__${at}` }))
  for (let at = 0; at < 50; at++) metrics.count(call({ tool: `one__${at}`, method: `made/up${at}` }))
  const counted = linesOf(metrics).filter((line) => line.startsWith('trunkline_calls_total'))
  expect(counted).toContain('trunkline_calls_total{server="one",tool="other",method="tools/call",outcome="ok",era="modern"} 47')
  expect(counted).toContain('trunkline_calls_total{server="one",tool="other",method="other",outcome="ok",era="modern"} 47')
  expect(counted).toHaveLength(8)
  expect(capped).toBe(94)
})

test('a call that reached no server has no tool, whatever its host named', () => {
  const metrics = new CallMetrics(
    () => 3,
    () => undefined,
  )
  for (let at = 0; at < 20; at++) metrics.count(call({ server: undefined, tool: `made-up-${at}`, outcome: 'refused' }))
  expect(linesOf(metrics)).toContain(
    'trunkline_calls_total{server="",tool="",method="tools/call",outcome="refused",era="modern"} 20',
  )
})

test('durations are cumulative, and an exemplar is in the bucket of its call', () => {
  const metrics = new CallMetrics(
    () => 3,
    () => undefined,
  )
  for (const seconds of [0.0005, 0.02, 0.02, 4, 1_000]) metrics.count(call({ seconds, ref: Math.ceil(seconds) }))
  const text = linesOf(metrics, true)
  const bucket = (le: string): string | undefined => text.find((line) => line.includes(`le="${le}"`))
  expect(bucket('0.001')).toMatch(/\} 1 # \{call="1"\} 0\.0005 1700000000\.000$/)
  expect(bucket('0.01')).toMatch(/\} 1$/)
  expect(bucket('0.025')).toMatch(/\} 3 # /)
  expect(bucket('1.0')).toMatch(/\} 3$/)
  expect(bucket('300.0')).toMatch(/\} 4$/)
  expect(bucket('+Inf')).toMatch(/\} 5 # \{call="1000"\}/)
})

test('a duration of exactly a bound is in its bucket, and its exemplar is the latest call there', () => {
  const metrics = new CallMetrics(
    () => 3,
    () => undefined,
  )
  metrics.count(call({ seconds: 0.001, ref: 1 }))
  metrics.count(call({ seconds: 0.0009, ref: 2, traceId: 'T', at: 1_700_000_001 }))
  const text = linesOf(metrics, true)
  expect(text.find((line) => line.includes('le="0.001"'))).toMatch(/\} 2 # \{call="2",trace_id="T"\} 0\.0009 1700000001\.000$/)
  expect(text.find((line) => line.includes('_sum'))).toMatch(/ 0\.0019$/)
  expect(text).toContain('# TYPE trunkline_calls counter')
  expect(text.slice(-2)).toEqual(['# EOF', ''])
  expect(linesOf(metrics)).toContain('# TYPE trunkline_calls_total counter')
  expect(formatMetrics([{ type: 'gauge', name: 'x', help: 'X', samples: [] }], false)).toBe('\n')
})

test('a name that would end its label is escaped', () => {
  const metrics = new CallMetrics(
    () => 3,
    () => undefined,
  )
  metrics.count(call({ tool: 'a"b\\c\nd} 1\nevil 2\ud800' }))
  expect(linesOf(metrics)).toContain(
    'trunkline_calls_total{server="one",tool="a\\"b\\\\c\\nd} 1\\nevil 2\ufffd",method="tools/call",outcome="ok",era="modern"} 1',
  )
})

test('every limit that an error or a counter names has a series from the start', () => {
  const source = fileURLToPath(new URL('../../../src', import.meta.url))
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const pattern =
    /'((?:listen\.limits|limits|timeouts|ui\.capture|listen|telemetry\.(?:otlp|prometheus))\.[a-z_]+|admin\.connections)'/g
  const named = files.flatMap((file) =>
    [...readFileSync(`${source}/${file}`, 'utf8').matchAll(pattern)].map(([, option]) => option ?? ''),
  )
  expect(named.length).toBeGreaterThan(50)
  const others = ['listen.unix', 'listen.unix_mode', 'listen.systemd', 'listen.workers']
  expect([...new Set(named)].filter((option) => ![...LIMIT_OPTIONS, ...others].includes(option))).toEqual([])
})

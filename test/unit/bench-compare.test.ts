/** Two runs of the benchmark beside each other. */
import { expect, test } from 'vitest'
import { differences, renderComparison, shortFigures, worsened } from '../../bench/compare.ts'
import type { Row } from '../../bench/rounds.ts'
import { spread } from '../../bench/stats.ts'

const run = (figures: Record<string, number>) => ({ date: '2026-01-01', machine: 'one', node: '24.0.0', figures })

test('a figure more than 15 % above the committed one is named, others are only shown', () => {
  const [before, now] = [run({ a: 1, b: 1, c: 2, gone: 1 }), run({ a: 1.16, b: 1.14, c: 1, fresh: 1 })]
  expect(worsened(differences(before.figures, now.figures)).map(({ name }) => name)).toEqual(['a'])
  const text = renderComparison(before, now)
  const [all, named] = text.split('Worsened by more than 15 %:')
  expect(all).toMatch(/1\.16 .* a\n.*1\.14 .* b\n.*0\.50 .* c\n/)
  expect(named).toMatch(/^\n *1\.16 +1 → 1\.16 +a\n/)
  expect(named).toContain('1 figures of this run are not among the committed ones')
})

test('runs on another machine say so, and a run that worsened nowhere says that', () => {
  const text = renderComparison({ ...run({ a: 1 }), machine: 'other' }, run({ a: 1 }))
  expect(text).toContain('Nothing worsened by more than 15 %')
  expect(text).toContain('Then: other, node 24.0.0. Now: one, node 24.0.0.')
})

test('each row of this gateway has a name of its own, those of others have none', () => {
  const row = (subject: string, ratio: number): Row => ({
    subject,
    between: ['legacy', 'modern'],
    tool: 't100',
    kind: 'prose',
    inFlight: 32,
    calls: 1,
    bad: 0,
    firstBad: undefined,
    cpuPerCall: spread([1]),
    cpuByRound: [1],
    ratio: spread([ratio]),
    callsPerSecond: spread([1]),
    p50: 1,
    p99: 1,
  })
  expect(shortFigures([row('raw', 1), row('trunkline', 0.7), row('trunkline-jwt', 0.8)], [])).toEqual({
    'CPU per call ÷ raw, legacy → modern, 100 B × 32': 0.7,
    'trunkline-jwt: CPU per call ÷ raw, legacy → modern, 100 B × 32': 0.8,
  })
})

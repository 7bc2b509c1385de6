/** The language in which calls are looked for. */
import { describe, expect, test } from 'vitest'
import type { CallRow } from '../../../src/observe/capture/captured.ts'
import { parseFilter } from '../../../src/observe/filter.ts'

const NOW = Date.parse('2026-11-22T20:00:00Z')

const row = (facts: Partial<CallRow> = {}): CallRow => ({
  id: 7,
  at: '2026-11-22T19:55:00.000Z',
  state: 'done',
  host: 'claude-code 2.1.0',
  transport: 'http',
  era: 'modern',
  revision: '2026-07-28',
  principal: 'token:ci',
  session: null,
  toolset: 'review',
  endpoint: null,
  method: 'tools/call',
  name: 'gh__search_code',
  server: 'github',
  original: 'search_code',
  outcome: 'ok',
  error: null,
  ms: { total: 1_500, host: 10, gateway: 2, downstream: 1_488 },
  bytesIn: 200,
  bytesOut: 20_000,
  tokensOut: 5_000,
  rules: ['B107'],
  lanes: 1,
  replayOf: null,
  traceId: null,
  ...facts,
})

const holds = (text: string, facts: Partial<CallRow> = {}): boolean => {
  const end = parseFilter(text)
  if ('problem' in end) throw new Error(end.problem.message)
  return end.filter(row(facts), NOW)
}

const FAILED: Partial<CallRow> = { outcome: 'failed', error: { kind: 'timeout', code: null, message: 'no answer within 300 s' } }

describe('a term', () => {
  test.each([
    ['', true],
    ['tool:gh__*', true],
    ['tool:GH__SEARCH*', true],
    ['tool:search_code', true],
    ['tool:gh__?earch_code', true],
    ['tool:gh__', false],
    ['tool:*code*search*', false],
    ['tool:g*_*_s*code', true],
    ['server:gitlab,github', true],
    ['host:claude-code', true],
    ['host:cursor', false],
    ['method:tools/call', true],
    ['toolset:review', true],
    ['principal:token:ci', true],
    ['rule:B107', true],
    ['era:modern', true],
    ['era:2026*', true],
    ['id:7', true],
    ['outcome:ok', true],
    ['ok', true],
    ['err', false],
    ['open', false],
    ['>1s', true],
    ['>1500ms', false],
    ['>=1500', true],
    ['<20ms', false],
    ['gateway<5ms', true],
    ['downstream>1.4s', true],
    ['host>1s', false],
    ['out>10KiB', true],
    ['in>1k', false],
    ['tokens>2k', true],
    ['since:10m', true],
    ['since:1m', false],
    ['until:4m', true],
    ['since:2026-11-22T19:00Z', true],
    ['search', true],
    ['"gh__search"', true],
    ['nothing', false],
    ['-tool:gh__*', false],
    ['-err >1s server:github', true],
    ['>1s err', false],
  ])('%j holds: %j', (text, expected) => expect(holds(text)).toBe(expected))

  test('an error is found by its state, its kind and its words', () => {
    for (const text of ['err', 'kind:timeout', 'outcome:failed', '"no answer"', '-ok'])
      expect(holds(text, FAILED), text).toBe(true)
    for (const outcome of ['input_required', 'task', 'streamed'] as const) expect(holds('err', { outcome }), outcome).toBe(false)
  })

  test('a call under way is neither well nor wrong', () => {
    const open = { state: 'open', outcome: null } as const
    expect([holds('open', open), holds('ok', open), holds('err', open)]).toEqual([true, false, false])
  })
})

describe('a mistake', () => {
  test.each([
    ['outcome=error', 0, /a field is written "outcome:…"/],
    ['tool:a sever:b', 7, /nothing is called "sever:"; known: tool, /],
    ['err >fast', 4, />.*such as 1s/],
    ['size>1', 0, /nothing is called "size"/],
    ['since:yesterday', 0, /such as 10m/],
    ['server:', 0, /needs a value/],
    ['constructor:x', 0, /nothing is called/],
    ['constructor>1', 0, /nothing is called/],
  ])('in %j is told with its place', (text, at, message) => {
    const end = parseFilter(text)
    expect(end).toMatchObject({ problem: { at, message: expect.stringMatching(message) as string } })
  })

  test('a pattern made to be slow is not', () => {
    const name = `${'a'.repeat(5_000)}b`
    expect(holds(`tool:${'*a'.repeat(300)}c`, { name, original: null })).toBe(false)
    expect(parseFilter('x'.repeat(1_001))).toMatchObject({ problem: { message: expect.stringContaining('1000') as string } })
  })
})

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
    // The value itself, just below and just above it.
    ['total>1500', false],
    ['total<1500', false],
    ['<=1500', true],
    ['>=1500.001ms', false],
    ['<=1499.999ms', false],
    ['<1m', true],
    ['>1h', false],
    ['<1d', true],
    ['gateway>=2', true],
    ['lanes>0', true],
    ['lanes>1', false],
    ['in>=200', true],
    ['out<=20k', true],
    ['out>=20KB', true],
    ['out<0.02m', false],
    ['out<1MB', true],
    ['out<1MiB', true],
    ['out<1GiB', true],
    ['tokens>=5000', true],
    ['since:2026-11-22T19:55:00Z', true],
    ['until:2026-11-22T19:55:00Z', true],
    ['until:2026-11-22T19:54:59Z', false],
    ['since:5m', true],
    ['until:5m', true],
    ['since:2026-11-23', false],
    ['name:*search*', true],
    ['tool:*', true],
    ['tool:gh__search_code*', true],
    ['tool:search_code_and_more', false],
    ['tool:*ch_co*de', true],
    ['tool:gh__*gh__search_code', false],
    ['tool:search_?ode', true],
    ['tool:search_cod', false],
    ['tool:search_code*code', false],
    ['tool:*search_code', true],
    ['tool:*earc?*ode', true],
    ['tool:*_code*', true],
    ['tool:*ode*ode*', false],
    ['tool:*ode*e', false],
    ['tool:,gh__*,', true],
    ['host:"claude-code 2.1.0"', true],
    ['host:"claude-code 2.1', false],
    ['transport:http', true],
    ['id:8', false],
    ['session:*', false],
    ['"tool:x"', false],
    ['-nothing', true],
    ['tools/call', true],
    ['GITHUB', true],
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

test.each<[text: string, facts: Partial<CallRow>]>([
  ['server:one', { server: null, endpoint: 'one' }],
  ['kind:-32602', { error: { kind: null, code: -32602, message: null } }],
  ['outcome:open', { state: 'open', outcome: null }],
  ['session:s1', { session: 's1' }],
  ['-host:cursor', { host: null }],
  ['-search', { name: null, original: null }],
  ['-', { name: 'a-b' }],
])('%j holds for %j', (text, facts) => expect(holds(text, facts)).toBe(true))

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
    ['server:,,', 0, /needs a value/],
    ['out>1xb', 0, /needs a value/],
    ['out>1constructor', 0, /needs a value/],
    ['since:x', 0, /such as 10m/],
    ['until:10', 0, /such as 10m/],
    ['since:2026-99-99', 0, /such as 10m/],
    ['  -a=b', 2, /a field is written "a:…"; in quotes, "a=b" is searched/],
  ])('in %j is told with its place', (text, at, message) => {
    const end = parseFilter(text)
    expect(end).toMatchObject({ problem: { at, message: expect.stringMatching(message) as string } })
  })

  test('a pattern made to be slow is not', () => {
    const name = `${'a'.repeat(5_000)}b`
    expect(holds(`tool:${'*a'.repeat(300)}c`, { name, original: null })).toBe(false)
    expect(parseFilter('x'.repeat(1_000))).toHaveProperty('filter')
    expect(parseFilter('x'.repeat(1_001))).toMatchObject({ problem: { message: expect.stringContaining('1000') as string } })
  })
})

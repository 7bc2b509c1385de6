/** Expressions in CEL: what is refused when they are read, what they see, and that no input makes them slow. */
import { RE2JS } from 're2js'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { EvaluationFailed, Expressions, MAX_PATTERNS } from '../../../src/policy/expression.ts'
import { MAX_EXPRESSION_CHARS } from '../../../src/policy/options.ts'
import { PolicyAnnotations, PolicyCall, PolicyCaller, PolicyRequest, Unknown, UNKNOWN } from '../../../src/policy/subject.ts'
import type { Maybe, Subject } from '../../../src/policy/subject.ts'

const NOON = new Date('2026-06-01T12:00:00Z')

interface Given {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly args?: Maybe<unknown>
  readonly time?: Maybe<Date>
  readonly name?: Maybe<string>
}

const subject = ({ claims = {}, args = {}, time = NOON, name = 'a__x' }: Given = {}): Subject => ({
  caller: new PolicyCaller('ann', claims, ['read'], 'ops'),
  call: new PolicyCall({
    method: 'tools/call',
    server: 'a',
    name,
    original: 'x',
    annotations: () => new PolicyAnnotations((hint) => hint === 'readOnlyHint'),
    arguments: args === UNKNOWN ? UNKNOWN : () => args,
  }),
  request: new PolicyRequest('2025-11-25', 'inspector', '127.0.0.1', time === UNKNOWN ? UNKNOWN : () => time),
})

const compile = (text: string) => {
  const expression = new Expressions().compile(text)
  if ('fault' in expression) throw new Error(expression.fault)
  return expression
}
const evaluate = (text: string, given?: Given): boolean => compile(text).evaluate(subject(given))

test.each<[text: string, at: number, fault: RegExp]>([
  ['', 0, /Unexpected token: EOF/],
  ['call.name ==', 12, /Unexpected token: EOF/],
  ['call.nam == "x"', 5, /No such key: nam/],
  ['user == "x"', 0, /Unknown variable: user/],
  ['call.name == 1', 0, /no such overload: string == int/],
  ['caller.scopes', 0, /is of type list<string>, and a rule takes bool/],
  ['call.annotations.readonly', 17, /No such key: readonly/],
  ['call.name.matches("a(")', 18, /is no regular expression of RE2/],
  ['call.name.matches("(a)\\\\1")', 18, /is no regular expression of RE2/],
  ['__round() ? true : false', 0, /__round is no name/],
  [`call.name == "${'x'.repeat(MAX_EXPRESSION_CHARS)}"`, MAX_EXPRESSION_CHARS, /is longer than 4096 characters/],
  [`${'('.repeat(60)}true${')'.repeat(60)}`, 0, /depth/i],
  [`[${'1,'.repeat(600)}1] == []`, 0, /maximum|exceed|limit/i],
  ['[1].all(a, [1].all(b, [1].all(c, [1].all(d, a == d))))', 0, /loops inside of loops, 4 deep/],
])('%s is refused where it is wrong', (text, at, fault) => {
  const compiled = new Expressions().compile(text)
  expect(compiled).toMatchObject({ fault: expect.stringMatching(fault) as unknown })
  if (at > 0) expect(compiled).toMatchObject({ at })
})

test.each<[text: string, expected: boolean]>([
  ['caller.principal == "ann" && caller.toolset == "ops" && "read" in caller.scopes', true],
  ['call.method == "tools/call" && call.server == "a" && call.name == "a__x" && call.original == "x"', true],
  ['call.annotations.readOnlyHint && !call.annotations.destructiveHint', true],
  ['call.annotations.idempotentHint || call.annotations.openWorldHint', false],
  ['[1, "a"].size() == 2', true],
  ['[1].all(a, [1].all(b, [1].all(c, a == b && b == c)))', true],
  [`"${'x'.repeat(1_000)}".matches("${'x'.repeat(1_000)}")`, true],
  [`call.name != "${'x'.repeat(MAX_EXPRESSION_CHARS - 'call.name != ""'.length)}"`, true],
  ['request.revision == "2025-11-25" && request.host == "inspector" && request.address == "127.0.0.1"', true],
  ['request.time.getHours() == 12 && request.time > timestamp("2026-01-01T00:00:00Z")', true],
  ['"dev" in caller.claims.groups', true],
  ['caller.claims.groups.exists(g, g.startsWith("d") || false)', true],
  ['caller.claims.groups.all(g, (g == "dev") || (g == "ops"))', true],
  ['caller.claims.groups.map(g, g + "!").exists(g, (g).matches("^d.v!$"))', true],
  ['caller.claims.groups.map(g, g == "ops", g + "x") == ["opsx"]', true],
  ['caller.claims.groups.filter(g, g.matches("o")).size() == 1', true],
  ['caller.claims.groups.exists_one(g, g == "dev")', true],
  ['call.arguments.amount > 100 && call.arguments.deep.list[1] == "b"', true],
  ['call.arguments.?missing.orValue("none") == "none" && !has(call.arguments.missing)', true],
  ['call.arguments["with-dash"] == true', true],
  ['caller.claims.constructor == 1 || true', true],
  // Methods with two arguments, the first of which is a name: they are no loops.
  ['caller.claims.groups.exists(g, "a dev".indexOf(g, 0) == 2)', true],
  ['caller.claims.groups.exists(g, "x".indexOf(g, "xx".indexOf(g, "xxx".indexOf(g, 0) + 1) + 1) == -1)', true],
  ['call.name.substring(1, 3) == "__"', true],
])('%s is %s', (text, expected) => {
  const claims = { groups: ['dev', 'ops'] }
  const args = { amount: 250, deep: { list: ['a', 'b'] }, 'with-dash': true }
  expect(evaluate(text, { claims, args })).toBe(expected)
})

test.each<[text: string, claims: Readonly<Record<string, unknown>>]>([
  ['"dev" in caller.claims.groups', { groups: 'dev' }],
  ['"dev" in caller.claims.groups', {}],
  ['"dev" in caller.claims.groups', { groups: null }],
  ['caller.claims.level > 3', { level: 'high' }],
  ['caller.claims.admin', { admin: 'yes' }],
  ['caller.claims.groups.exists(g, g.startsWith("d"))', { groups: [1, { a: 2 }] }],
])('a claim of another type makes %s fail for %j', (text, claims) => {
  expect(() => evaluate(text, { claims })).toThrow(EvaluationFailed)
})

describe('what is not known', () => {
  test.each<[text: string, expected: boolean | 'unknown']>([
    ['call.arguments.amount > 100', 'unknown'],
    ['call.arguments.amount > 100 && call.server == "b"', false],
    ['call.server == "b" && call.arguments.amount > 100', false],
    ['call.arguments.amount > 100 || call.server == "a"', true],
    ['has(call.arguments.path)', 'unknown'],
    ['caller.scopes.exists(s, s == call.arguments.scope)', 'unknown'],
    ['caller.scopes.exists(s, s == call.arguments.scope || s == "read")', true],
    ['request.time.getHours() > 8', 'unknown'],
    ['call.arguments.?x.orValue(1) == 1', 'unknown'],
  ])('%s is %s', (text, expected) => {
    const run = (): boolean => evaluate(text, { args: UNKNOWN, time: UNKNOWN })
    if (expected === 'unknown') expect(run).toThrow(Unknown)
    else expect(run()).toBe(expected)
  })
})

test('an unknown field that one rule reads does not make the failure of the next one unknown', () => {
  const one = subject({ args: UNKNOWN, time: UNKNOWN, claims: { admin: 'yes' } })
  for (const text of ['call.arguments.amount > 1', 'request.time.getHours() > 8']) {
    expect(() => compile(text).evaluate(one)).toThrow(Unknown)
    expect(() => compile('caller.claims.admin + 1 == 2').evaluate(one)).toThrow(EvaluationFailed)
  }
})

describe('input that would be slow', () => {
  afterEach(() => vi.restoreAllMocks())

  test('100,000 rounds are counted, and no more, in loops that are fast', () => {
    vi.spyOn(performance, 'now').mockReturnValue(0)
    const run = (rounds: number): boolean =>
      evaluate('caller.claims.groups.all(g, g == 1.0)', { claims: { groups: Array.from({ length: rounds }, () => 1) } })
    expect(run(100_000)).toBe(true)
    expect(() => run(100_001)).toThrow(/more than 100000 rounds/)
  })

  test('loops that are slow end after 250 ms', () => {
    let nowMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 100))
    expect(evaluate('caller.claims.groups.all(g, g == 1.0)', { claims: { groups: Array.from({ length: 48 }, () => 1) } })).toBe(
      true,
    )
    expect(() =>
      evaluate('caller.claims.groups.all(g, g == 1.0)', { claims: { groups: Array.from({ length: 64 }, () => 1) } }),
    ).toThrow(/250 ms/)
  })

  const groups = Array.from({ length: 10_000 }, (_, at) => `team-${at}`)

  test('10,000 groups are looked through', () => {
    vi.spyOn(performance, 'now').mockReturnValue(0)
    expect(evaluate('"team-9999" in caller.claims.groups', { claims: { groups } })).toBe(true)
    expect(evaluate('caller.claims.groups.exists(g, g.matches("^team-9999$"))', { claims: { groups } })).toBe(true)
  })

  test.each([
    'caller.claims.groups.exists(g, caller.claims.groups.exists(h, h == g + "z"))',
    'caller.claims.groups.exists(g, caller.claims.groups.exists(h, h == g + "z")) || call.server == "a"',
    'caller.claims.groups.map(g, caller.claims.groups.map(h, g + h)).size() > 0',
    'caller.claims.groups.filter(g, caller.claims.groups.exists_one(h, h == g)).size() > 0',
    'caller.claims.groups.map(g, caller.claims.groups.all(h, h == h), g).size() > 0',
  ])('a quadratic expression over them fails: %s', (text) => {
    expect(() => evaluate(text, { claims: { groups } })).toThrow(/its loops take more than 100000 rounds/)
  })

  test('a regular expression with nested repetition takes linear time', () => {
    const args = { text: `${'a'.repeat(50_000)}!` }
    expect(evaluate('call.arguments.text.matches("^(a+)+$")', { args })).toBe(false)
    expect(() => evaluate('call.name.matches(call.arguments.text)', { args })).toThrow(/longer than 1000 characters/)
    expect(() => evaluate('call.name.matches(call.arguments.text)', { args: { text: '(' } })).toThrow(/no regular expression/)
  })
})

describe('regular expressions', () => {
  afterEach(() => vi.restoreAllMocks())

  test('that are constants are compiled when the expression is, and never again', () => {
    const spy = vi.spyOn(RE2JS, 'compile')
    const expression = compile('call.name.matches("^a__")')
    expect(spy).toHaveBeenCalledTimes(1)
    for (let times = 0; times < 3; times++) expect(expression.evaluate(subject())).toBe(true)
    expect(spy).toHaveBeenCalledTimes(1)
  })

  test(`that calls bring are kept compiled, ${MAX_PATTERNS} of them`, () => {
    const spy = vi.spyOn(RE2JS, 'compile')
    const expression = compile('call.name.matches(call.arguments.pattern)')
    /** How many of the patterns up to `end` had to be compiled. */
    const compiled = (end: number): number => {
      spy.mockClear()
      for (let at = 0; at < end; at++) expression.evaluate(subject({ args: { pattern: `x{${at}}` } }))
      return spy.mock.calls.length
    }
    expect([compiled(MAX_PATTERNS), compiled(MAX_PATTERNS)]).toEqual([MAX_PATTERNS, 0])
    // One more drops them all.
    expect([compiled(MAX_PATTERNS + 1), compiled(2)]).toEqual([1, 2])
  })
})

test.each<[text: string, members: readonly (readonly [name: string, chars: number])[] | undefined]>([
  [
    'call.arguments.amount > 100.0 && call.arguments.?text.orValue("") == ""',
    [
      ['amount', Infinity],
      ['text', 0],
    ],
  ],
  [
    'has(call.arguments.path) && call.arguments["other"] == 1.0',
    [
      ['path', Infinity],
      ['other', Infinity],
    ],
  ],
  ['call.arguments.rows.exists(row, row.id == 1.0)', [['rows', Infinity]]],
  ['caller.principal == "a" || caller.claims["path"] == "a"', []],
  ['call.arguments.rows["x"] == 1.0', [['rows', Infinity]]],
  ['call.arguments.?path.orValue(null) == "/etc"', [['path', Infinity]]],
  ['"path" in call.arguments', undefined],
  ['call.arguments.exists(name, name == "x")', undefined],
  ['call.arguments[call.name] == 1.0', undefined],
  ['size(call.arguments) > 2', undefined],
  ['call.arguments.path == "a" || call.arguments == {}', undefined],
  ['[call].exists(c, c.arguments.amount > 1.0)', undefined],
  ['call.arguments.path == "/etc"', [['path', 4]]],
  ['"/etc" != call.arguments["path"]', [['path', 4]]],
  ['call.arguments.path in ["/etc", "/root", ""]', [['path', 5]]],
  ['call.arguments.path in []', [['path', 0]]],
  [
    'call.arguments.?path.orValue("") == "/etc" || call.arguments[?"to"].orValue("bob") != "ann"',
    [
      ['path', 4],
      ['to', 3],
    ],
  ],
  ['call.arguments.path == "/etc" || call.arguments.path == "/bin/sh"', [['path', 7]]],
  ['call.arguments.path == "/etc" || call.arguments.path.startsWith("/")', [['path', Infinity]]],
  ['call.arguments.path.size() > 3 || call.arguments.path == "/etc"', [['path', Infinity]]],
  [
    'call.arguments.path == call.arguments.to',
    [
      ['path', Infinity],
      ['to', Infinity],
    ],
  ],
  ['call.arguments.path == call.name', [['path', Infinity]]],
  ['call.arguments.path + "c" == "/etc"', [['path', Infinity]]],
  ['call.arguments.path in ["/etc", call.name]', [['path', Infinity]]],
  ['call.arguments.amount == 1', [['amount', Infinity]]],
  ['call.arguments.?path.orValue(call.name) == "/etc"', [['path', Infinity]]],
  ['call.arguments.?path.or(optional.of("x")).orValue("") == "/etc"', [['path', Infinity]]],
  ['call.arguments.path.deep == "/etc"', [['path', Infinity]]],
  ['"/etc" in call.arguments.paths', [['paths', Infinity]]],
])('of the arguments, %s reads', (text, members) => {
  const read = compile(text).members
  expect(read && [...read]).toEqual(members)
})

test('T-20 members of arguments are names that a rule looks up, and those of claims are none', () => {
  const { names } = compile(
    `caller.claims.Team.Name == "a" && call.arguments.rows[0].path == "b" && caller["claims"].Owner == "c" &&
      caller.?claims.?Area.orValue("") == "d" && caller[?"claims"].?Zone.orValue("") == "e"`,
  )
  expect([...names].toSorted()).toEqual(expect.arrayContaining(['path', 'rows']) as unknown)
  for (const name of ['Name', 'Owner', 'Area', 'Zone']) expect([...names]).not.toContain(name)
  expect([...compile('call.arguments.rows.exists(row, row.kind == "x")').names]).toContain('kind')
})

test('T-20 a name that a rule compares a member with is one of the names it looks up', () => {
  expect([...compile('call.arguments.?from.orValue("x") in ["y"]').names].toSorted()).toEqual(['from', 'x', 'y'])
})

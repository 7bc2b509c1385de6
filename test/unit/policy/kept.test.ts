/** What a policy keeps of one caller is used for no other: all that a rule reads of the caller tells them apart. */
import { expect, test } from 'vitest'
import type { Entry } from '../../../src/catalog/inventory.ts'
import { wholeOf } from '../../../src/policy/arguments.ts'
import { DEFAULT_POLICY, DEFAULT_SERVICE } from '../../../src/policy/options.ts'
import { Policy } from '../../../src/policy/policy.ts'
import type { Judged } from '../../../src/policy/policy.ts'
import { PolicyAnnotations } from '../../../src/policy/subject.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import type { CallerFacts } from '../../../src/rpc/call.ts'

const ENTRY = { original: 'pay' } as Entry
const FACTS: CallerFacts = { claims: { groups: ['dev'] }, scopes: ['mcp:connect'], address: '10.0.0.7', host: 'editor' }

const judged = (facts: CallerFacts, more: Partial<Judged> = {}): Judged => ({
  caller: { principal: 'ann', revision: '2025-11-25', capabilities: {}, scope: EVERYTHING, session: undefined, facts },
  toolset: undefined,
  method: 'tools/call',
  server: 'bank',
  name: 'bank__pay',
  original: 'pay',
  entry: ENTRY,
  annotations: () => new PolicyAnnotations(() => false),
  ...more,
})
const policyOf = (when: string): Policy =>
  new Policy({
    ...DEFAULT_POLICY,
    rules: [{ id: 'policy.rules[0]', when, decision: 'allow', reason: undefined }],
    otherwise: 'deny',
  })
const decide = (policy: Policy, call: Judged, args = '{}'): string =>
  policy.judge(call, () => wholeOf(Buffer.from(args))).decision

test.each<[what: string, when: string, other: Judged]>([
  ['claims, as of a renewed token', '"dev" in caller.claims.groups', judged({ ...FACTS, claims: { groups: [] } })],
  ['claims, read from the whole', '[caller].exists(c, "dev" in c.claims.groups)', judged({ ...FACTS, claims: { groups: [] } })],
  ['scopes', '"mcp:connect" in caller.scopes', judged({ ...FACTS, scopes: [] })],
  ['the address', 'request.address == "10.0.0.7"', judged({ ...FACTS, address: '10.0.0.8' })],
  ['the host', 'request.host == "editor"', judged({ ...FACTS, host: 'other' })],
  ['the principal', 'caller.principal == "ann"', judged(FACTS, { caller: { ...judged(FACTS).caller, principal: 'bob' } })],
  ['the toolset', 'caller.toolset == ""', judged(FACTS, { toolset: 'review' })],
  ['the name', 'call.name == "bank__pay"', judged(FACTS, { name: 'pay' })],
])('of one caller, %s', (_what, when, other) => {
  const policy = policyOf(when)
  for (let time = 0; time < 2; time++) {
    expect(decide(policy, judged(FACTS))).toBe('allow')
    expect(decide(policy, other)).toBe('deny')
  }
  expect(policy.mayAllow(judged(FACTS))).toBe(true)
  expect(policy.mayAllow(other)).toBe('default')
})

test('what depends on the arguments or on the time is decided for each call', () => {
  const byArguments = policyOf('call.arguments.amount < 10.0')
  expect([5, 50, 5].map((amount) => decide(byArguments, judged(FACTS), JSON.stringify({ amount })))).toEqual([
    'allow',
    'deny',
    'allow',
  ])
  const byTime = policyOf('request.time < timestamp("2026-06-01T12:00:00Z")')
  const at = (time: string) => byTime.judge(judged(FACTS), () => undefined, new Date(time)).decision
  expect([at('2026-06-01T11:00:00Z'), at('2026-06-01T13:00:00Z')]).toEqual(['allow', 'deny'])
})

test('what was decided for long texts holds for no other member, and for no shorter text', () => {
  const policy = policyOf('call.arguments.?from.orValue("") != "ann" && call.arguments.?to.orValue("bob") == "bob"')
  const long = 'x'.repeat(100)
  const calls: readonly [args: object, decision: string][] = [
    [{ from: long }, 'allow'],
    [{ to: long }, 'deny'],
    [{ from: 'ann' }, 'deny'],
    [{ from: long, to: long }, 'deny'],
    [{ from: long, to: 'bob' }, 'allow'],
    [{ from: long }, 'allow'],
    [{}, 'allow'],
    [{ from: 'ann' }, 'deny'],
  ]
  for (const [args, decision] of calls)
    expect([args, decide(policy, judged(FACTS), JSON.stringify(args))]).toEqual([args, decision])
})

test('what was decided for long texts is decided again when the time decides, too', () => {
  const policy = policyOf('call.arguments.text != "a" && request.time < timestamp("2026-06-01T12:00:00Z")')
  const args = wholeOf(Buffer.from(JSON.stringify({ text: 'x'.repeat(100) })))
  const at = (time: string) => policy.judge(judged(FACTS), () => args, new Date(time)).decision
  expect([at('2026-06-01T11:00:00Z'), at('2026-06-01T13:00:00Z')]).toEqual(['allow', 'deny'])
})

test('T-20 arguments that cannot be judged are denied after others that were long', () => {
  const policy = policyOf('call.arguments.text != "a"')
  const long = `"text":"${'x'.repeat(100)}"`
  expect(decide(policy, judged(FACTS), `{${long}}`)).toBe('allow')
  expect(decide(policy, judged(FACTS), `{${long},${long}}`)).toBe('deny')
  expect(decide(policy, judged(FACTS), `{${long}}`)).toBe('allow')
})

test('what a list shows depends on the time where a rule does', () => {
  expect(policyOf('request.time < timestamp("2000-01-01T00:00:00Z")').mayAllow(judged(FACTS))).toBe('default')
  expect(policyOf('request.time > timestamp("2000-01-01T00:00:00Z")').mayAllow(judged(FACTS))).toBe(true)
})

test.each([
  ['deny', 'call.arguments.amount > 10.0', 'default'],
  ['allow', 'call.arguments.amount > 10.0', true],
  ['confirm', 'call.arguments.amount > 10.0', true],
  ['deny', 'request.time > timestamp("2000-01-01T00:00:00Z")', false],
  ['allow', 'request.time > timestamp("2000-01-01T00:00:00Z") && caller.claims.groups', false],
] as const)('a list, with a rule that would %s for %s: %s', (decision, when, shown) => {
  const policy = new Policy({ ...DEFAULT_POLICY, rules: [{ id: 'r', when, decision, reason: undefined }] })
  expect(policy.mayAllow(judged(FACTS))).toBe(shown)
  expect(policy.confirms).toBe(decision === 'confirm')
})

test('a policy with a service may ask for a confirmation', () => {
  const service = { ...DEFAULT_SERVICE, url: new URL('http://127.0.0.1:9/') }
  expect(new Policy({ ...DEFAULT_POLICY, service }).confirms).toBe(true)
})

test.each(['call.arguments.?path.orValue("") != "/etc"', '[call].exists(c, !has(c.arguments.path))'])(
  'T-20 a key that differs from one of %s only in case is denied',
  (when) => {
    const policy = policyOf(when)
    expect(decide(policy, judged(FACTS), '{"other":1}')).toBe('allow')
    expect(decide(policy, judged(FACTS), '{"Path":"/etc"}')).toBe('deny')
    expect(() => policy.checkArguments(Buffer.from('{"Path":1}'))).toThrow(/only in case/)
  },
)

test('arguments may have as many bytes as policy.max_arguments says, wherever they lie', () => {
  const rules = [{ id: 'r', when: 'has(call.arguments.path)', decision: 'allow', reason: undefined }] as const
  const policy = new Policy({ ...DEFAULT_POLICY, rules, maxArgumentsBytes: 10 })
  const bytes = Buffer.from(' '.repeat(20) + '{"path":1}')
  expect(policy.judge(judged(FACTS), () => ({ bytes, start: 20, end: 30 })).decision).toBe('allow')
  expect(decide(policy, judged(FACTS), '{"path":12}')).toBe('deny')
})

test('what is kept of callers is bounded', () => {
  const policy = policyOf('call.annotations.readOnlyHint')
  const callers = Array.from({ length: 20_001 }, (_, at) =>
    judged(FACTS, { caller: { ...judged(FACTS).caller, principal: `${at}` } }),
  )
  expect(evaluations(policy, callers.slice(0, 20_000)).every((count) => count === 1)).toBe(true)
  expect(evaluations(policy, callers.slice(0, 1))).toEqual([0])
  expect(evaluations(policy, [callers[20_000]!, callers[0]!])).toEqual([1, 1])
})

test('arguments that no rule reads are not asked for', () => {
  const policy = policyOf('call.original == "pay"')
  const asked = (): never => {
    throw new Error('asked for the arguments')
  }
  expect(policy.judge(judged(FACTS), asked).decision).toBe('allow')
})

/** For each call in turn, how often the rules were evaluated: each time they read the annotations once. */
const evaluations = (policy: Policy, calls: readonly Judged[]): readonly number[] =>
  calls.map((call) => {
    let count = 0
    const annotations = (): PolicyAnnotations => (count++, new PolicyAnnotations(() => true))
    decide(policy, { ...call, annotations })
    return count
  })

test('what was decided of a caller holds for the same facts in another object', () => {
  const policy = policyOf('call.annotations.readOnlyHint && "dev" in caller.claims.groups && request.host == "editor"')
  expect(evaluations(policy, [judged(FACTS), judged({ ...FACTS }), judged({ ...FACTS, scopes: [...FACTS.scopes] })])).toEqual([
    1, 0, 0,
  ])
})

const OTHERS: readonly (readonly [what: string, when: string, other: CallerFacts])[] = [
  ['address', 'request.address != ""', { ...FACTS, address: '10.0.0.8' }],
  ['host', 'request.host != ""', { ...FACTS, host: 'other' }],
  ['scope', '"mcp:connect" in caller.scopes', { ...FACTS, scopes: ['mcp:connect', 'mcp:more'] }],
]

test.each(OTHERS)('two callers of another %s are evaluated once each, in whatever order they call', (_what, when, other) => {
  const policy = policyOf(`call.annotations.readOnlyHint && ${when}`)
  const calls = [FACTS, other, FACTS, other].map((facts) => judged(facts))
  expect(evaluations(policy, calls)).toEqual([1, 1, 0, 0])
})

test.each(OTHERS)('a caller of another %s is evaluated again only where a rule reads it', (_what, _when, other) => {
  const policy = policyOf('call.annotations.readOnlyHint')
  const bob = judged(FACTS, { caller: { ...judged(FACTS).caller, principal: 'bob' } })
  expect(evaluations(policy, [judged(FACTS), bob, judged(other)])).toEqual([1, 1, 0])
})

test.each([
  [50, 0],
  [51, 1],
])('for the same arguments, a rule that reads %i members of them is evaluated %i more times', (count, again) => {
  const reads = Array.from({ length: count }, (_, at) => `call.arguments.?m${at}.orValue("") != "x"`)
  const policy = policyOf(`call.annotations.readOnlyHint && ${reads.join(' && ')}`)
  expect(evaluations(policy, [judged(FACTS), judged(FACTS)])).toEqual([2, again])
})

test('members of the arguments that no rule names decide nothing, and are not judged', () => {
  expect(decide(policyOf('call.arguments.amount < 10.0'), judged(FACTS), '{"amount":5,"x":{"y":1,"y":2}}')).toBe('allow')
})

test('T-20 a rule about "__proto__" reads that member, and no rule reads what it holds as members of the arguments', () => {
  const args = '{"__proto__":{"path":"/etc"}}'
  expect(decide(policyOf('call.arguments["__proto__"].path == "/etc"'), judged(FACTS), args)).toBe('allow')
  const both = policyOf('has(call.arguments.__proto__) && call.arguments.?path.orValue("") == "/etc"')
  expect(decide(both, judged(FACTS), args)).toBe('deny')
})

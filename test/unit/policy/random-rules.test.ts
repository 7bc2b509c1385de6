/**
 * What a policy keeps changes no decision: random rules and calls, beside the rules evaluated one after the other with everything known.
 * The calls of one policy come in turns, so that what was kept of one is there when the next comes.
 */
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../../src/catalog/inventory.ts'
import { wholeOf } from '../../../src/policy/arguments.ts'
import { EvaluationFailed, Expressions } from '../../../src/policy/expression.ts'
import { DEFAULT_POLICY } from '../../../src/policy/options.ts'
import type { PolicyRule } from '../../../src/policy/options.ts'
import { Policy } from '../../../src/policy/policy.ts'
import type { Judged, Verdict } from '../../../src/policy/policy.ts'
import { PolicyAnnotations, PolicyCall, PolicyCaller, PolicyRequest } from '../../../src/policy/subject.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import type { CallerFacts } from '../../../src/rpc/call.ts'

const POLICIES = 150
const CALLS = 40

class Dice {
  #seed: number
  constructor(seed: number) {
    this.#seed = seed
  }
  /** Linear congruential (Numerical Recipes). */
  below(limit: number): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#seed / 2 ** 32) * limit)
  }
  of<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!
  }
}

const MEMBERS = ['text', 'path', 'amount'] as const
const TEXTS = ['', 'a', 'rm', 'forbidden', '/etc/passwd', 'é"\\', 'x'.repeat(54), 'x'.repeat(55), 'y'.repeat(200)]
const ATOMS: readonly ((dice: Dice) => string)[] = [
  (dice) => `call.server == "${dice.of(['bank', 'files'])}"`,
  (dice) => `call.original.startsWith("${dice.of(['pay', 'r'])}")`,
  () => 'call.annotations.readOnlyHint',
  (dice) => `caller.principal == "${dice.of(['ann', 'bob'])}"`,
  () => '"dev" in caller.claims.groups',
  () => 'caller.scopes.exists(scope, scope == "write")',
  (dice) => `request.host == "${dice.of(['editor', 'other'])}"`,
  (dice) => `request.time.getHours() < ${dice.of([6, 18])}`,
  (dice) => `call.arguments.${dice.of(MEMBERS)} == ${JSON.stringify(dice.of(TEXTS))}`,
  (dice) => `call.arguments["${dice.of(MEMBERS)}"] != ${JSON.stringify(dice.of(TEXTS))}`,
  (dice) => `call.arguments.?${dice.of(MEMBERS)}.orValue(${JSON.stringify(dice.of(TEXTS))}) == ${JSON.stringify(dice.of(TEXTS))}`,
  (dice) => `call.arguments.${dice.of(MEMBERS)} in ${JSON.stringify([dice.of(TEXTS), dice.of(TEXTS)])}`,
  (dice) => `call.arguments.?${dice.of(MEMBERS)}.orValue(0.0) > 10.0`,
  (dice) => `call.arguments.?${dice.of(MEMBERS)}.orValue(0) in [5, 7]`,
  (dice) => `call.arguments.?${dice.of(MEMBERS)}.?deep.orValue(false) == true`,
  (dice) => `has(call.arguments.${dice.of(MEMBERS)})`,
  (dice) => `call.arguments.${dice.of(MEMBERS)}.matches("^[ax]")`,
  (dice) => `call.arguments.${dice.of(MEMBERS)}.size() > 3`,
  (dice) => `call.arguments.${dice.of(MEMBERS)} == call.arguments.${dice.of(MEMBERS)}`,
  (dice) => `"${dice.of(MEMBERS)}" in call.arguments`,
]

const termOf = (dice: Dice, depth: number): string => {
  if (depth === 0 || dice.below(3) === 0) return dice.of(ATOMS)(dice)
  const [left, right] = [termOf(dice, depth - 1), termOf(dice, depth - 1)]
  return dice.of([`(${left} && ${right})`, `(${left} || ${right})`, `!(${left})`, `(${left} ? ${right} : ${left})`])
}

const ruleOf = (dice: Dice, at: number): PolicyRule => ({
  id: `policy.rules[${at}]`,
  when: termOf(dice, dice.below(3)),
  decision: dice.of(['allow', 'deny', 'confirm']),
  reason: `of ${at}`,
})

interface Made {
  readonly judged: Judged
  readonly args: object
  readonly time: Date
}

const FACTS: readonly CallerFacts[] = [
  { claims: { groups: ['dev'] }, scopes: ['write'], address: '10.0.0.7', host: 'editor' },
  { claims: { groups: [] }, scopes: [], address: '10.0.0.8', host: 'other' },
  { claims: {}, scopes: ['read'], address: '', host: '' },
]
const TOOLS = ['pay', 'read', 'rm'].map((original) => ({ original }) as Entry)

const callOf = (dice: Dice): Made => {
  const entry = dice.of(TOOLS)
  const server = entry.original === 'pay' ? 'bank' : 'files'
  const caller = { revision: '2025-11-25', capabilities: {}, scope: EVERYTHING, session: undefined } as const
  const judged: Judged = {
    caller: { ...caller, principal: dice.of(['ann', 'bob']), facts: dice.of(FACTS) },
    toolset: undefined,
    method: 'tools/call',
    server,
    name: `${server}__${entry.original}`,
    original: entry.original,
    entry,
    annotations: () => new PolicyAnnotations((hint) => hint === 'readOnlyHint' && entry.original === 'read'),
  }
  const values = [...TEXTS, ...TEXTS, 5, 50, null, true, ['a'], { deep: 'a' }]
  const args = Object.fromEntries(MEMBERS.filter(() => dice.below(2) === 0).map((name) => [name, dice.of(values)]))
  return { judged, args, time: new Date(Date.UTC(2026, 5, 1, dice.below(24))) }
}

/** Each rule in turn, all of it, with all arguments. */
const evaluated = (rules: readonly PolicyRule[], { judged, args, time }: Made): Verdict => {
  const { caller, method, server, name, original, annotations } = judged
  const { claims, scopes, address, host } = caller.facts!
  const expressions = new Expressions()
  for (const { id, when, decision, reason } of rules) {
    const expression = expressions.compile(when)
    if ('fault' in expression) throw new Error(expression.fault)
    try {
      const subject = {
        caller: new PolicyCaller(caller.principal, claims, scopes, ''),
        call: new PolicyCall({ method, server, name, original, annotations, arguments: () => args }),
        request: new PolicyRequest(caller.revision, host, address, () => time),
      }
      if (expression.evaluate(subject)) return { decision, rule: id, reason }
    } catch (error) {
      if (!(error instanceof EvaluationFailed)) throw error
      const told = error.told ?? `${id} cannot be evaluated for this call`
      return { decision: 'deny', rule: id, reason: told, detail: error.message }
    }
  }
  return { decision: 'deny', rule: 'policy.default', reason: 'no rule of the policy allows it' }
}

describe('what is kept of earlier calls changes no decision', () => {
  test.each(Array.from({ length: POLICIES }, (_, seed) => seed))('seed %i', (seed) => {
    const dice = new Dice(seed)
    const rules = Array.from({ length: 1 + dice.below(5) }, (_, at) => ruleOf(dice, at))
    const policy = new Policy({ ...DEFAULT_POLICY, rules })
    for (let count = 0; count < CALLS; count++) {
      const made = callOf(dice)
      const json = wholeOf(Buffer.from(JSON.stringify(made.args)))
      const verdict = policy.judge(made.judged, () => json, made.time)
      expect({ rules, made, verdict }).toEqual({ rules, made, verdict: evaluated(rules, made) })
    }
  })
})

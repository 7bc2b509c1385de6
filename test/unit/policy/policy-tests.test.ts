/** A test of a policy describes a call: rules see each part of it as it is written there. */
import { expect, test } from 'vitest'
import { DEFAULT_POLICY } from '../../../src/policy/options.ts'
import { verdictFor } from '../../../src/policy/policy-tests.ts'
import type { PolicyTest } from '../../../src/policy/policy-tests.ts'
import { Policy } from '../../../src/policy/policy.ts'

const CALLER: PolicyTest['caller'] = { principal: 'ann', claims: { groups: ['dev'] }, scopes: ['read'], toolset: 'ops' }
const CALL: PolicyTest['call'] = {
  method: 'tools/call',
  server: 'bank',
  name: 'bank__pay',
  original: 'pay',
  arguments: { amount: 5 },
  annotations: { idempotentHint: true },
}
const REQUEST: PolicyTest['request'] = {
  revision: '2025-11-25',
  host: 'editor',
  address: '10.0.0.7',
  time: new Date('2026-06-01T12:00:00Z'),
}

const decide = (when: string, call: Partial<PolicyTest['call']> = {}): string => {
  const rules = [{ id: 'policy.rules[0]', when, decision: 'allow', reason: undefined }] as const
  const test = { caller: CALLER, call: { ...CALL, ...call }, request: REQUEST, expect: 'allow' } as const
  return verdictFor(new Policy({ ...DEFAULT_POLICY, rules }), test).decision
}

test.each([
  'caller.principal == "ann" && caller.toolset == "ops" && caller.scopes == ["read"] && "dev" in caller.claims.groups',
  'call.method == "tools/call" && call.server == "bank" && call.name == "bank__pay" && call.original == "pay"',
  'call.arguments.amount == 5',
  'request.revision == "2025-11-25" && request.host == "editor" && request.address == "10.0.0.7"',
  'request.time == timestamp("2026-06-01T12:00:00Z")',
  'call.annotations.idempotentHint && !call.annotations.readOnlyHint && call.annotations.destructiveHint',
])('%s holds', (when) => {
  expect([decide(when), decide(`!(${when})`)]).toEqual(['allow', 'deny'])
})

test('a call without arguments has none, and what is no call of a tool only reads', () => {
  expect(decide('has(call.arguments.amount)')).toBe('allow')
  expect(decide('has(call.arguments.amount)', { arguments: undefined })).toBe('deny')
  expect(decide('call.annotations.readOnlyHint')).toBe('deny')
  expect(decide('call.annotations.readOnlyHint', { method: 'resources/read' })).toBe('allow')
})

/** `policy`: every mistake is told with its place when the file is read. */
import { expect, test } from 'vitest'
import { yaml } from './workspace.ts'

test('rules are read with their names, in order', async () => {
  await using files = await yaml(`
policy:
  max_arguments: 1KiB
  rules:
    - { name: office, when: 'call.server == "a"', decision: deny, reason: no }
    - { decision: allow }
`)
  expect((await files.load()).policy).toEqual({
    rules: [
      { id: 'policy.rules[0] (office)', when: 'call.server == "a"', decision: 'deny', reason: 'no' },
      { id: 'policy.rules[1]', when: 'true', decision: 'allow', reason: undefined },
    ],
    otherwise: 'deny',
    maxArgumentsBytes: 1024,
  })
})

test('without a policy there is none', async () => {
  await using files = await yaml('servers: {}')
  expect((await files.load()).policy).toBeUndefined()
})

test.each([
  [
    '{ when: call.nam == "x", decision: allow }',
    /:4:9 policy\.rules\[0\]\.when: character 6 of the expression: No such key: nam; known are caller/,
  ],
  ['{ when: user.name == "x", decision: allow }', /character 1 of the expression: Unknown variable: user; known are caller/],
  ['{ when: call.name == 1, decision: allow }', /no such overload: string == int; correct the expression/],
  ['{ when: "call.name ==", decision: allow }', /character 13 of the expression: Unexpected token: EOF/],
  ['{ when: call.name, decision: allow }', /is of type string, and a rule takes bool/],
  ['{ when: "true" }', /:4:7 policy\.rules\[0\]: decides nothing; add decision: allow, deny or confirm/],
  ['{ decision: deny }', /decides "deny" without a reason; add reason: the caller is told it/],
  ['{ decision: ask }', /expected one of allow, deny, confirm, got "ask"/],
  ['{ decision: allow, whn: "true" }', /unknown key "whn"; did you mean "when"\?/],
])('%s is refused', async (rule, message) => {
  await using files = await yaml(`policy:\n  default: deny\n  rules:\n    - ${rule}\n`)
  expect(await files.errors()).toEqual([expect.stringMatching(message)])
})

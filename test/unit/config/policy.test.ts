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
    service: undefined,
    maxArgumentsBytes: 1024,
  })
})

test.each([
  ['[results]', false],
  ['[arguments]', true],
])('a service with replaces: %s offers tasks to hosts: %s', async (replaces, tasks) => {
  await using files = await yaml(`policy: { service: { url: "http://127.0.0.1:8181/x", replaces: ${replaces} } }`)
  expect((await files.load()).gateway.tasks).toBe(tasks)
})

test('a service is read with its limits, and its headers are secrets', async () => {
  await using files = await yaml(`
policy:
  service:
    url: https://opa.test/v1/data/trunkline
    headers: { Authorization: Bearer hush-hush }
    timeout: 250ms
    max_answer: 4KiB
    on_failure: allow
    lists: false
    replaces: [arguments]
`)
  const { policy, secrets } = await files.load()
  expect(policy?.service).toEqual({
    url: new URL('https://opa.test/v1/data/trunkline'),
    headers: { Authorization: 'Bearer hush-hush' },
    timeoutMs: 250,
    maxAnswerBytes: 4096,
    onFailure: 'allow',
    lists: false,
    replaces: ['arguments'],
  })
  expect(secrets).toContain('Bearer hush-hush')
  await files.write('trunkline.yaml', 'policy: { service: { timeout: 1s } }')
  expect(await files.errors()).toEqual([expect.stringContaining('policy.service: has no address; add url')])
})

test('without a policy there is none', async () => {
  await using files = await yaml('servers: {}')
  expect((await files.load()).policy).toBeUndefined()
})

test.each([
  ['policy:', 'remove it to allow all calls, or write {} to deny them'],
  ['policy: ~', 'remove it to allow all calls, or write {} to deny them'],
  ['policy:\n  # rules: []', 'remove it to allow all calls, or write {} to deny them'],
  ['strict:', 'write true or false'],
])('a section that restricts callers and is empty is refused, and does not count as absent: %s', async (text, remedy) => {
  await using files = await yaml(`servers: {}\n${text}\n`)
  const [key] = text.split(':')
  expect(await files.errors()).toEqual([`trunkline.yaml:2:1 ${key}: is empty; ${remedy}`])
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
  ['{ decision: deny }', /decides "deny" without a reason; add reason, which the caller gets/],
  ['{ decision: ask }', /expected one of allow, deny, confirm, got "ask"/],
  ['{ decision: allow, whn: "true" }', /unknown key "whn"; did you mean "when"\?/],
])('%s is refused', async (rule, message) => {
  await using files = await yaml(`policy:\n  default: deny\n  rules:\n    - ${rule}\n`)
  expect(await files.errors()).toEqual([expect.stringMatching(message)])
})

const TESTED = `
servers: { bank: { command: x, prefix: bk } }
policy:
  rules:
    - { when: 'call.name == "bk__pay" && call.arguments.amount > 100', decision: confirm, reason: sure }
    - { when: 'request.time.getHours() < 8', decision: deny, reason: night }
    - { when: '"dev" in caller.claims.groups && call.annotations.readOnlyHint', decision: allow }
policy_tests:
`
const NOON = 'request: { time: 2026-06-01T12:00:00Z }'

test('policies are tested when the file is read', async () => {
  await using files = await yaml(`${TESTED}
  - { call: { server: bank, original: pay, arguments: { amount: 101 } }, expect: confirm }
  - { call: { server: bank, original: list }, request: { time: 2026-06-01T07:59:00Z }, expect: deny }
  - { call: { server: bank, original: list, annotations: { readOnlyHint: true } }, caller: { claims: { groups: [dev] } }, ${NOON}, expect: allow }
  - { call: { server: bank, original: 'file:///x', method: resources/read }, caller: { claims: { groups: [dev] } }, ${NOON}, expect: allow }
`)
  expect((await files.load()).policy?.rules).toHaveLength(3)
})

test.each([
  [
    `{ name: big, call: { server: bank, original: pay, arguments: { amount: 1 } }, caller: { claims: { groups: [] } }, ${NOON}, expect: confirm }`,
    /:9:5 policy_tests\[0\]: "big": expected confirm, got deny \(policy\.default\); correct the rules, or the test/,
  ],
  [
    `{ call: { server: bank, original: pay }, ${NOON}, expect: allow }`,
    /expected allow, got deny \(policy\.rules\[0\]: No such key: amount\)/,
  ],
  ['{ call: { server: bnk, original: pay }, expect: allow }', /policy_tests\[0\]\.call\.server: there is no server "bnk"/],
  ['{ expect: allow }', /names no call; add call/],
  ['{ call: { server: bank, original: pay } }', /expects nothing; add expect/],
  ['{ call: { server: bank, original: pay }, request: { time: noon }, expect: deny }', /expected a time such as/],
])('a file is refused where its test is %s', async (line, message) => {
  await using files = await yaml(`${TESTED}  - ${line}\n`)
  expect(await files.errors()).toEqual([expect.stringMatching(message)])
})

test('tests of no policy are a mistake', async () => {
  await using files = await yaml('policy_tests: []')
  expect(await files.errors()).toEqual([expect.stringContaining('"policy_tests" without policy test nothing; add policy')])
})

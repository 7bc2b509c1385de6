/** `trunkline can`, and policy tests at `check` and at a reload. */
import { expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'

const file = (fake: string, tests: string): string => `
auth: { tokens: [{ id: ann, hash: "sha256:${'ab'.repeat(32)}", toolsets: [ops] }] }
toolsets:
  ops: { tools: [a__echo, a__add], confirm: [a__echo] }
policy:
  rules:
    - { name: sums, when: 'call.original == "add" && call.arguments.a > 100', decision: deny, reason: too large }
    - { when: 'caller.principal == "token:ann"', decision: allow }
    - { when: '"dev" in caller.claims.groups', decision: confirm, reason: sure }
policy_tests:
  - { name: small sums, call: { server: a, original: add, arguments: { a: 1 } }, caller: { principal: token:ann }, expect: ${tests} }
servers:
  a: ${fake}
`

test('can says why or why not, and a reload that fails its tests is refused', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', file(cli.fake(), 'allow'))
  expect(await cli.here('check')).toMatchObject({ code: 0 })
  const up = await cli.up()
  await up.said(/server is ready/)
  const can = (...args: string[]) => cli.here('can', ...args)
  expect(await can('token:ann', 'a__add', 'a=1', 'b=2')).toMatchObject({ code: 0, stdout: 'yes: policy.rules[1]\n' })
  expect(await can('token:ann', 'a__add', '--args', '{"a":101}')).toMatchObject({
    code: 6,
    stdout: 'no: policy.rules[0] (sums)\n  too large\n',
  })
  expect(await can('token:ann', 'a__add')).toMatchObject({
    code: 6,
    stdout: expect.stringContaining('No such key: a') as unknown,
  })
  expect(await can('token:ann', 'a__echo')).toMatchObject({
    code: 0,
    stdout: 'yes, once a person has confirmed it: toolsets.ops.confirm\n',
  })
  expect(await can('bob', 'a__echo', '--claims', '{"groups":["dev"]}')).toMatchObject({
    code: 0,
    stdout: 'yes, once a person has confirmed it: policy.rules[2]\n  sure\n',
  })
  const json = await can('bob', 'a__echo', '--claims', '{"groups":[]}', '--json')
  expect(json.code).toBe(6)
  expect(JSON.parse(json.errors.at(-1) ?? '')).toEqual({ error: { exitCode: 6, message: 'bob may not use a__echo' } })
  expect(JSON.parse(json.stdout)).toEqual({
    kind: 'judged',
    method: 'tools/call',
    server: 'a',
    original: 'echo',
    decision: 'deny',
    rule: 'policy.default',
    reason: 'no rule of the policy allows it',
    isListed: false,
  })
  expect(await can('token:ann', 'a__fail')).toMatchObject({ code: 6, stderr: 'no: toolsets.ops hides a__fail from token:ann\n' })
  expect(await can('token:ann', 'a__ech')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('did you mean a__echo') as unknown,
  })
  expect(await can('token:ann', 'a__add', '--claims', '[1]')).toMatchObject({ code: 1 })
  expect(await can('token:ann', 'a__add', '--toolset', 'none')).toMatchObject({ code: 2 })

  await cli.write('trunkline.yaml', file(cli.fake(), 'deny').replace('a > 100', 'a > 5'))
  const checked = await cli.here('check')
  expect(checked).toMatchObject({ code: 2 })
  expect(checked.stderr).toMatch(/policy_tests\[0\]: "small sums": expected deny, got allow \(policy\.rules\[1\]\)/)
  expect(await cli.here('reload')).toMatchObject({ code: 2 })
  expect(await can('token:ann', 'a__add', 'a=50')).toMatchObject({ code: 0 })
})

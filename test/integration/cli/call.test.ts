/** `trunkline call`: what a call that Trunkline itself refuses says, and its number. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openAdmin } from '../../support/admin.ts'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'

const serving = async (): Promise<Cli> => {
  const cli = await commandLine()
  await cli.write(
    'trunkline.yaml',
    [
      'admin: { bind: "127.0.0.1:0" }',
      'telemetry: { log: { audit: ./audit.ndjson } }',
      'policy:',
      '  rules: [{ name: no sums, when: \'call.original == "add"\', decision: deny, reason: Sums are not made here. }]',
      '  default: allow',
      'servers:',
      `  one: ${cli.fake().replace(/ ?}$/, ', tools: { echo: { rate: 1/h } } }')}`,
    ].join('\n'),
  )
  await cli.up()
  return cli
}

test('a call that a rule or a rate refuses ends with 5 and says why, and names no server that could not be reached', async () => {
  await using cli = await serving()
  const denied = await cli.here('call', 'one__add', 'a=1', 'b=2')
  expect(denied.code).toBe(5)
  expect(denied.stderr).toMatch(/denied by policy: Sums are not made here\.; see trunkline can local one__add/)
  expect((await cli.here('call', 'one__echo', 'text=x')).code).toBe(0)
  const limited = await cli.here('call', 'one__echo', 'text=x')
  expect(limited.code).toBe(5)
  expect(limited.stderr).toMatch(/servers\.one\.tools\.echo\.rate \(1\/h\) is reached; retry after \d+ s\n/)
})

test('a call of the command line has one number in the audit log and in the captured calls', async () => {
  await using cli = await serving()
  const { ask } = await openAdmin(cli)
  await cli.here('call', 'one__echo', 'text=x')
  // Cast: the shape of the answer.
  const { calls } = (await ask('GET', '/api/calls')).json as { calls: { id: number }[] }
  const lines = readFileSync(cli.path('audit.ndjson'), 'utf8').trim().split('\n')
  expect(calls).toHaveLength(1)
  expect(lines.map((line) => (JSON.parse(line) as { ref: number }).ref)).toEqual(calls.map(({ id }) => id))
})

test('a name that no host sees: the error says what to type instead', async () => {
  await using cli = await commandLine()
  await cli.write(
    'trunkline.yaml',
    `servers:\n  a: ${cli.fake()}\n  b: ${cli.fake().replace(/ ?}$/, ', filter: { deny: [add] } }')}\n`,
  )
  const errorOf = async (name: string): Promise<string> => (await cli.here('call', name, 'text=x')).errors.join('\n')
  expect(await errorOf('echo')).toBe('echo: Unknown tool: echo; did you mean a__echo, b__echo?')
  expect(await errorOf('x__echo')).toBe('x__echo: Unknown tool: x__echo; did you mean a__echo, b__echo?')
  expect(await errorOf('b__add')).toBe('b__add: Unknown tool: b__add; it is hidden: trunkline why b__add')
  expect(await errorOf('zzz')).toBe('zzz: Unknown tool: zzz; see all with: trunkline tools')
})

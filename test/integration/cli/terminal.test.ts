/** What commands print of a server whose every text tries to drive a terminal (T-15). */
import { expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'

const UNSAFE = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/

const COMMANDS = [
  'check --live',
  'check --live --json',
  'check --live --host all',
  'lock',
  'check --locked',
  'diff --json',
  'tools --json',
  'why a__echo',
  'why bad\u001b[31m',
  'call a__echo',
  'call a__echo --json',
  'call a__fail',
  'call a__refuse --json',
  'call no\u001b[2Jpe',
  'call a__echo --toolset \u009b2J',
  'login \u202eb',
  '\u001b[2J',
]

test('T-15 no command prints a control character of a server, as text or as JSON', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `lock: { file: ./trunkline.lock }\nservers:\n  a: ${cli.fake('hostile')}\n`)
  for (const words of COMMANDS) {
    const { stdout, stderr } = await cli.here(...words.split(' '))
    expect(stdout, words).not.toMatch(UNSAFE)
    expect(stderr, words).not.toMatch(UNSAFE)
    expect(stdout + stderr, words).not.toBe('')
  }
}, 60_000)
test('T-15 commands to a running process print none either', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('hostile')}\n  b: ${cli.fake('hostile-dying')}\n`)
  await using up = await cli.up()
  await up.said(/MCP/)
  await cli.write('trunkline.yaml', `servers:\n  c: ${cli.fake('hostile')}\n  d: { command: "x\\e[2J" }\n`)
  for (const words of [
    'ps',
    'ps --json',
    'call a__echo --json',
    'call a__echo',
    'restart b',
    'approve a',
    'plan',
    'reload',
    'ps',
    'tools',
  ])
    for (const text of Object.values(await cli.run(words.split(' '))).slice(1, 3)) expect(text, words).not.toMatch(UNSAFE)
  for (const line of up.lines) expect(line).not.toMatch(UNSAFE)
}, 60_000)
test('T-15 call --json prints a result that means the same, on one line', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('hostile')}\n`)
  const { stdout } = await cli.here('call', 'a__echo', '--json')
  expect(stdout.split('\n')).toHaveLength(2)
  const { content } = JSON.parse(stdout) as { content: { text: string }[] }
  expect(content[0]!.text).toMatch(
    /^\u001b\[31mred\u001b\]0;title\u0007 \u009b2J \u0085 \u2028\u2029 \u007f \u202e\u2066\rover\n/,
  )
})
test('a text of several lines is printed in lines, its tabs as the columns that they make', async () => {
  await using cli = await commandLine({}, {})
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n`)
  expect((await cli.here('call', 'a__echo', 'text=one\ttwo\r\nthree\n')).stdout).toBe('one     two\nthree\n')
})

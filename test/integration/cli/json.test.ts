/** `--json` on every command: what is on stdout is JSON in lines, and a failure ends stderr with one object. */
import { expect, test } from 'vitest'
import { commandTable } from '../../../src/cli.ts'
import { commandLine } from '../../support/cli.ts'

/** Words that each command is run with, here where no process runs; absent: it serves until it is told to end. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  check: [],
  lock: [],
  diff: [],
  init: ['cursr'],
  import: [],
  add: ['b', '--', 'x'],
  remove: ['nope'],
  connect: ['cursr'],
  disconnect: ['cursor'],
  fmt: ['--check'],
  adapt: ['.mcp.json'],
  doctor: [],
  logs: [],
  completion: ['bash'],
  schema: [],
  'token new': [],
  'token explain': [],
  tools: [],
  call: ['a__echo', 'text=hi'],
  ps: [],
  tail: [],
  replay: ['1'],
  report: ['1'],
  top: ['--once'],
  mock: ['none.ndjson'],
  open: [],
  login: ['nope'],
  why: ['a__echo'],
  can: ['local', 'a__echo'],
  plan: [],
  reload: [],
  approve: ['nope'],
  restart: ['nope'],
}
/** These serve; a wrong configuration ends them at once. */
const SERVING = ['up', 'stdio']

test('every command takes -c, --state and --json, answers in lines of JSON, and ends a failure with one object on stderr', async () => {
  await using cli = await commandLine({ '.mcp.json': '{"mcpServers":{"b":{"command":"x"}}}', 'wrong.yaml': 'servers: 5\n' })
  await cli.write(
    'trunkline.yaml',
    `listen: { http: { bind: 127.0.0.1:0 } }\nlock: { file: ./trunkline.lock }\nservers:\n  a: ${cli.fake()}\n`,
  )
  const commands = commandTable()
  expect(commands.map(({ name }) => name).toSorted()).toEqual([...Object.keys(WORDS), ...SERVING].toSorted())
  for (const { name, options } of commands) {
    const flags = options.map((option) => option.flags)
    expect(flags, name).toEqual(expect.arrayContaining(['-c, --config <file>', '--state <folder>', '--json']))
    const words = SERVING.includes(name) ? ['-c', 'wrong.yaml'] : (WORDS[name] ?? [])
    // What stands behind -- belongs to a server's command.
    const { code, stdout, stderr, errors } = await cli.here(...name.split(' '), '--json', ...words)
    for (const line of stdout.split('\n').filter((text) => text !== ''))
      expect(() => JSON.parse(line), `${name}: ${line}`).not.toThrow()
    if (code === 0) expect(stdout, name).not.toBe('')
    else expect(JSON.parse(errors.at(-1) ?? ''), `${name}: ${stderr}`).toMatchObject({ error: { exitCode: code } })
  }
}, 60_000)

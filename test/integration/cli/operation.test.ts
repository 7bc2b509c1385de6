/** What the command line says when something is misspelt, missing, broken or too old. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createPlainServer } from 'node:net'
import type { Server } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { configurationId } from '../../../src/config/read/folders.ts'
import { commandLine, INITIALIZE, message } from '../../support/cli.ts'
import { PROGRAM } from '../../support/program.ts'

describe('a command that is not known', () => {
  test.each([
    ['restrat a', 'unknown command "restrat"; did you mean "restart"?'],
    ['tool', 'unknown command "tool"; did you mean "tools"?'],
    ['--no-watch check', '"check" comes after options of "up", which it does not take; put it first, with its own options'],
    ['frobnicate', 'unknown command "frobnicate"; trunkline --help shows every command'],
    ['up more', 'up takes no "more"; name a configuration with -c FILE'],
  ])('%s', async (words, said) => {
    await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
    expect(await cli.here(...words.split(' '))).toMatchObject({ code: 1, stdout: '', errors: [said] })
  })
})

test.each([
  ['restart', "error: missing required argument 'server'", 'trunkline restart --help shows its arguments and options'],
  ['token new --lod', "error: unknown option '--lod'", 'trunkline token new --help shows its arguments and options'],
  ['--lod', "error: unknown option '--lod'", 'trunkline --help shows every command and option'],
])('bad arguments name the help of their command: %s', async (words, error, help) => {
  await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
  const { code, stderr } = await cli.here(...words.split(' '))
  expect(code).toBe(1)
  expect(stderr).toBe(`${error}\n(${help})\n`)
})

describe('restart', () => {
  test('waits until the server is up', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('good', 'log')}\n`)
    await using up = await cli.up()
    await up.said(/MCP/)
    const { code, stdout } = await cli.here('restart', 'a', '--json')
    expect([code, JSON.parse(stdout)]).toEqual([0, { restarted: 'a', state: 'healthy' }])
  })
  test('ends with 4 and the reason where it does not come up', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('once', 'log')}\n  b: { command: no-such-program }\n`)
    await using up = await cli.up()
    await up.said(/MCP/)
    const crashed = await cli.here('restart', 'a')
    expect([crashed.code, crashed.stdout]).toEqual([4, ''])
    expect(crashed.errors[0]).toMatch(/^a was restarted but does not run: .*exited with code 3: no settings found; trunkline ps/)
    const missing = await cli.here('restart', 'b')
    expect(missing.code).toBe(4)
    expect(missing.errors[0]).toMatch(/ENOENT: not found; install it, or write its full path/)
  })
})

describe('a command that waits for the running process', () => {
  const waiting = async (end: 'command' | 'gateway', ...more: readonly string[]) => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('good', 'log')}\n`)
    const up = await cli.up()
    await up.said(/MCP/)
    const call = cli.spawn(['call', 'a__wait', `until=${cli.path('never')}`, ...more])
    await cli.called('log')
    if (end === 'command') call.signal('SIGINT')
    else up.signal('SIGKILL')
    const code = await call.ended
    if (end === 'command') up.signal('SIGKILL')
    await up.ended
    return { code, lines: call.lines }
  }

  test('ends with 130 where it is interrupted', async () => {
    expect(await waiting('command')).toEqual({ code: 130, lines: ['interrupted'] })
    const { code, lines } = await waiting('command', '--json')
    expect([code, JSON.parse(lines.at(-1) ?? '')]).toEqual([130, { error: { exitCode: 130, message: 'interrupted' } }])
  })

  test('ends with 4 where that process is killed', async () => {
    const line = 'the running process has ended, or does not answer (ECONNRESET); start it again'
    expect(await waiting('gateway')).toEqual({ code: 4, lines: [line] })
  })

  /** At the socket of the process that a command looks for. */
  const atSocket = async (server: Server) => {
    const cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
    await mkdir(cli.path('run/trunkline'), { mode: 0o700 })
    server.listen(cli.path(`run/trunkline/${configurationId(cli.path('trunkline.yaml'))}.sock`))
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    return cli
  }

  test('ends with 4 where that process is of another version', async () => {
    await using cli = await atSocket(createServer((_, response) => void response.writeHead(404).end('{}')))
    expect(await cli.here('ps')).toMatchObject({
      code: 4,
      stderr: 'the running process is of another version, and cannot do this; start it again\n',
    })
  })

  test.each(['ps', 'tools', 'check --host cursor', 'plan', 'doctor'])(
    '%s ends with 130 at Ctrl-C where that process is stopped',
    async (words) => {
      const server = createPlainServer((socket) => void socket.resume().on('error', () => undefined))
      await using cli = await atSocket(server)
      const command = cli.spawn(words.split(' '))
      await once(server, 'connection')
      command.signal('SIGINT')
      expect(await command.ended).toBe(130)
      expect(command.lines).toEqual(['interrupted'])
    },
  )
})

test.each(['SIGHUP', 'SIGTERM'] as const)(
  'F-22 a command with servers of its own ends them at %s, as at Ctrl-C',
  async (signal) => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('good', 'log')}\n`)
    const call = cli.spawn(['call', 'a__wait', `until=${cli.path('never')}`])
    await cli.called('log')
    call.signal(signal)
    expect(await call.ended).toBe(130)
    expect(call.lines).toEqual(['interrupted'])
  },
)

describe('a message that names a command names it with the -c that was given', () => {
  test.each([
    ['what can be typed as it is', 'other.yaml', 'other.yaml'],
    ['what a shell would split', "the team's file.yaml", String.raw`'the team'\''s file.yaml'`],
  ])('%s', async (_, name, quoted) => {
    await using cli = await commandLine()
    await cli.write(name, `reload: { confirm: true }\nservers:\n  a: { command: no-such-program }\n`)
    await using up = await cli.up('-c', name)
    await up.said(/MCP/)
    expect(up.lines.join('\n')).toContain(`→ trunkline restart a -c ${quoted}`)
    expect((await cli.here('ps', '-c', name)).stdout).toContain(`→ trunkline restart a -c ${quoted}`)
    expect((await cli.here('restart', 'a', '-c', name)).errors[0]).toContain(`; trunkline ps -c ${quoted} shows its output`)
    expect((await cli.here('call', 'nope', '-c', name)).errors[0]).toContain(`see all with: trunkline tools -c ${quoted}`)
    const call = message(1, 'tools/call', { name: 'a__echo', arguments: {} })
    const { stdout } = await cli.run(['stdio', '-c', name], INITIALIZE + message(undefined, 'notifications/initialized') + call)
    expect(stdout).toContain(
      JSON.stringify(`(operator: trunkline ps -c ${quoted}, trunkline restart a -c ${quoted})`).slice(1, -1),
    )
    await cli.write(name, `reload: { confirm: true }\nservers: {}\n`)
    const told = JSON.parse(await up.said(/the configuration changed/)) as { msg: string }
    expect(told.msg).toContain(`trunkline plan -c ${quoted} shows the changes, trunkline reload -c ${quoted} applies them`)
  })
  test('and without one where it was found', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', 'servers:\n  a: { command: no-such-program }\n')
    await using up = await cli.up()
    await up.said(/MCP/)
    expect((await cli.here('ps')).stdout).toMatch(/→ trunkline restart a$/m)
  })
})

test('a command that holds its arguments is told to use args', async () => {
  await using cli = await commandLine({ 'trunkline.yaml': 'servers:\n  a: { command: "python x.py", args: [-v] }\n' })
  const { code, errors } = await cli.here('check')
  expect(code).toBe(2)
  expect(errors).toEqual([
    'trunkline.yaml:2:8 servers.a.command: "python x.py" contains arguments; write command: python, args: ["x.py", "-v"]',
  ])
})

test('check --host without a host is refused', async () => {
  await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
  expect(await cli.here('check', '--host', ',')).toMatchObject({
    code: 1,
    stderr: '--host takes names of hosts, such as cursor,vscode, or all\n',
  })
})

test('diff of a name that is not known ends with 1', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n`)
  expect(await cli.here('diff', 'a__ehco')).toMatchObject({
    code: 1,
    errors: ['nothing is called "a__ehco"; see all with: trunkline tools'],
  })
  expect(await cli.here('diff', 'a__echo')).toMatchObject({ code: 0, stdout: 'a__echo is as approved\n' })
  expect(await cli.here('diff', 'a')).toMatchObject({ code: 0 })
})

test('reload.confirm: a change is shown by plan and waits for reload', async () => {
  await using cli = await commandLine()
  const text = (more: string): string => `reload: { confirm: true }\nservers:\n  a: ${cli.fake()}\n${more}`
  await cli.write('trunkline.yaml', text(''))
  await using up = await cli.up()
  await up.said(/MCP/)
  await cli.write('trunkline.yaml', text(`  b: ${cli.fake()}\n`))
  await up.said(/the configuration changed: trunkline plan/)
  expect((await cli.here('tools', '--json')).stdout).not.toContain('b__echo')
  expect((await cli.here('plan')).stdout).toMatch(/^ {2}\+ {2}server +b/m)
  expect(await cli.here('reload')).toMatchObject({ code: 0 })
  await up.said(/configuration reloaded/)
})

test('too old a Node is told in one sentence, before anything else is loaded', async () => {
  const old = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.11.0'}})`
  const child = spawn(process.execPath, ['--import', old, PROGRAM, 'check'])
  const said: Buffer[] = []
  child.stderr.on('data', (chunk: Buffer) => said.push(chunk))
  const code = await new Promise((resolve) => child.once('close', resolve))
  expect(code).toBe(1)
  expect(Buffer.concat(said).toString()).toMatch(
    /^trunkline needs Node 22\.19 or later, and this is v[\d.]+; install a newer one.*\n$/,
  )
  const source = await readFile(PROGRAM, 'utf8')
  expect(source).not.toMatch(/^import /m)
  const { engines } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    engines: { node: string }
  }
  expect(engines.node).toBe('>=22.19')
})

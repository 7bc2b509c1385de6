/** Ctrl-C while a command without a running process waits, or asks a question: it ends with 130, and does nothing more. */
import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { configurationId } from '../../../src/config/read/folders.ts'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import { ioWith } from '../../support/io.ts'

/** Runs a command in this process, which is interrupted when it prints something or asks a question, or by `interrupt`. */
const interruptible = (cli: Cli, args: readonly string[], isTTY = false) => {
  const interrupt = new AbortController()
  const stream = () => Object.assign(new PassThrough(), { isTTY })
  const [stdin, stdout, stderr] = [stream(), stream(), stream()]
  let remarks = ''
  stderr.on('data', (chunk: Buffer) => {
    remarks += chunk.toString()
    if (/\[\w\/\w\] $/.test(remarks)) setImmediate(() => interrupt.abort())
  })
  let printed = ''
  stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
    interrupt.abort()
  })
  const io = ioWith({ stdin, stdout, stderr, interrupted: interrupt.signal })
  const { env, folder: cwd } = cli
  const context = { env, cwd, home: cli.path('home'), uid: process.getuid?.(), platform: process.platform }
  const code = run(args, io, (overrides) => ({ ...context, overrides }))
  return { interrupt, printed: () => printed, ended: code.then((exitCode) => ({ code: exitCode, stderr: remarks })) }
}

test('F-22 call ends with 130', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers: { a: ${cli.fake('good', 'log')} }\n`)
  const { interrupt, ended } = interruptible(cli, ['call', 'a__wait'])
  await cli.called('log')
  interrupt.abort()
  expect(await ended).toEqual({ code: 130, stderr: 'interrupted\n' })
})

test('F-22 login ends with 130 when its link was just printed', async () => {
  await using issuer = await FakeIssuer.start()
  await using server = await FakeDownstream.start(fake.offering('echo'))
  protect(server, issuer)
  await using cli = await commandLine()
  const { url } = server.address as { url: URL }
  await cli.write('trunkline.yaml', `servers: { a: { url: ${url.href}, credentials: { oauth: { scopes: [read] } } } }\n`)
  expect(await interruptible(cli, ['login', 'a']).ended).toEqual({ code: 130, stderr: 'interrupted\n' })
})

test('F-22 connect ends with 130 at a question, and writes nothing after it', async () => {
  const before = '{ "mcpServers": { "own": { "command": "x" } } }'
  await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
  await mkdir(cli.path('home/.cursor'))
  await cli.write('home/.cursor/mcp.json', before)
  // `--yes` answers the question whether to write, and not the one whether to move its servers.
  const { code, stderr } = await interruptible(cli, ['connect', 'cursor', '--yes', '--no-wait'], true).ended
  expect([code, stderr]).toEqual([130, expect.stringMatching(/move its server behind Trunkline\? \[y\/N\] .*interrupted\n$/s)])
  expect(await readFile(cli.path('home/.cursor/mcp.json'), 'utf8')).toBe(before)
})

test('F-22 lock says what it wrote, also where the running process does not answer its reload', async () => {
  await using cli = await commandLine({ 'trunkline.yaml': 'servers: { a: { command: x } }\nlock: { file: ./trunkline.lock }\n' })
  await mkdir(cli.path('run/trunkline'), { mode: 0o700 })
  const offered = [{ key: 'a', lock: { key: 'a', entries: [], apps: [] }, isForCallers: false, reason: '' }]
  let interrupt = (): void => undefined
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/reload') === true) interrupt()
    else response.end(JSON.stringify(offered))
  })
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  server.listen(cli.path(`run/trunkline/${configurationId(cli.path('trunkline.yaml'))}.sock`))
  await once(server, 'listening')
  const command = interruptible(cli, ['lock'])
  interrupt = () => command.interrupt.abort()
  expect((await command.ended).code).toBe(130)
  expect(command.printed()).toContain('wrote trunkline.lock: 1 server, 0 definitions')
})

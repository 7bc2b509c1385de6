/** Ctrl-C while a command without a running process waits: it ends with 130, and soon. */
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { Redactor } from '../../../src/redactor.ts'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'

/** Runs a command in this process, which is interrupted when it prints something, or by `interrupt`. */
const interruptible = (cli: Cli, args: readonly string[]) => {
  const interrupt = new AbortController()
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  let remarks = ''
  stderr.on('data', (chunk: Buffer) => (remarks += chunk.toString()))
  stdout.on('data', () => interrupt.abort())
  const io = {
    stdin,
    stdout,
    stderr,
    interrupted: interrupt.signal,
    crashed: new AbortController().signal,
    redactor: new Redactor(),
    onHangup: () => () => undefined,
  }
  const { env, folder: cwd } = cli
  const context = { env, cwd, home: cli.path('home'), uid: process.getuid?.(), platform: process.platform }
  const code = run(args, io, (overrides) => ({ ...context, overrides }))
  return { interrupt, ended: code.then((exitCode) => ({ code: exitCode, stderr: remarks })) }
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

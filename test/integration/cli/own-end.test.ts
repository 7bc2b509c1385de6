/** A process ends by itself, once nothing is left to do: `process.exit` may wait for ever for the threads of the engine (decision 0318). */
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { commandLine, INITIALIZE } from '../../support/cli.ts'

/** What Node reports with `--trace-exit` when the program ends the process. */
const ENDED_BY_PROGRAM = 'Exited the environment'
const TRACED = { NODE_OPTIONS: '--trace-exit' }

test.each([
  [['--version'], 0],
  [['check'], 0],
  [['no-such-command'], 1],
  [['stdio', '-c', 'trunkline.yaml'], 0],
])('F-22 %j ends by itself with its code', async (args, code) => {
  await using cli = await commandLine({}, TRACED)
  await cli.write('trunkline.yaml', `servers:\n  fake: ${cli.fake()}\n`)
  const ended = await cli.run(args)
  expect(ended.stderr).not.toContain(ENDED_BY_PROGRAM)
  expect(ended.code).toBe(code)
})

test.each(['SIGTERM', 'SIGINT'] as const)('F-22 a gateway ends by itself after %s', async (signal) => {
  await using cli = await commandLine({}, TRACED)
  await cli.write('trunkline.yaml', `servers:\n  fake: ${cli.fake()}\n`)
  const up = await cli.up()
  up.signal(signal)
  expect(await up.ended).toBe(0)
  expect(up.lines.join('\n')).not.toContain(ENDED_BY_PROGRAM)
})

test('F-22 a host that leaves its pipe open does not keep a process that ends', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  fake: ${cli.fake()}\n`)
  await cli.up()
  const attached = cli.spawn(['stdio', '-c', 'trunkline.yaml'])
  attached.child.stdin!.write(INITIALIZE)
  await once(attached.child.stdout!, 'data')
  attached.signal('SIGTERM')
  expect(await attached.ended).toBe(0)
})

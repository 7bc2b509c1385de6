/** T-12: a configuration of another user in the folder. It runs commands, so it is used only where it is named. */
import { chownSync, mkdirSync, readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { commandLine } from '../../support/cli.ts'
import { ioWith } from '../../support/io.ts'

const OTHERS = 'servers: { a: { command: x } }\n'

/** A folder with the file of another user, and commands of a user whom it does not belong to. */
const scene = async () => {
  const cli = await commandLine({ 'trunkline.yaml': OTHERS })
  mkdirSync(cli.path('home/.cursor'))
  await cli.write('home/.cursor/mcp.json', '{ "mcpServers": { "own": { "command": "cursors-own" } } }')
  if (process.getuid?.() === 0) chownSync(cli.path('home/.cursor/mcp.json'), 4_001, 4_001)
  const file = cli.path('trunkline.yaml')
  // Files of root are trusted, so root gives this one away first.
  const owner = process.getuid?.() || 4_000
  if (owner === 4_000) chownSync(file, owner, owner)
  const { env, folder: cwd } = cli
  const here = async (...args: readonly string[]) => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const io = ioWith({ stdout, stderr })
    const context = { env, cwd, home: cli.path('home'), uid: owner + 1, platform: process.platform }
    const code = await run(args, io, (overrides) => ({ ...context, overrides }))
    stderr.end()
    return { code, stderr: await text(stderr) }
  }
  return { file, cli, here, [Symbol.asyncDispose]: () => cli[Symbol.asyncDispose]() }
}

test('T-12 a command that passes it over names it, and how to use it', async () => {
  await using stage = await scene()
  const { file, here } = stage
  const { stderr } = await here('check')
  expect(stderr).toContain(`${file} is not used: it belongs to another user; to use it, name it: trunkline -c`)
  expect((await here('fmt', '-c', file)).stderr).not.toContain('another user')
})

test.each(['init --yes', 'add b https://b.test/mcp', 'remove a'])('T-12 %s does not change it', async (words) => {
  await using stage = await scene()
  const { code, stderr } = await stage.here(...words.split(' '))
  expect([code, stderr]).toEqual([2, expect.stringContaining(`${stage.file} belongs to another user and is not changed`)])
  expect(readFileSync(stage.file, 'utf8')).toBe(OTHERS)
})

test('T-12 connect --move takes the servers of a host to the file of the user, not to that one', async () => {
  await using stage = await scene()
  const { code } = await stage.here('connect', 'cursor', '--move')
  expect(code).toBe(0)
  expect(readFileSync(stage.file, 'utf8')).toBe(OTHERS)
  expect(readFileSync(stage.cli.path('home/.config/trunkline/trunkline.yaml'), 'utf8')).toContain('cursors-own')
})

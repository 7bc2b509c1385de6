/** Folders that cannot be made: each command says which one and what helps, at once, and serves what it can without them. */
import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { PROGRAM } from '../../support/program.ts'

const execute = promisify(execFile)

/** Where a folder is to be made, by what stands in its way. */
const BAD: Readonly<Record<string, (cli: Cli) => string>> = {
  ...(process.platform === 'linux' && { 'below /proc': () => '/proc/x' }),
  'below a link to nothing': (cli) => {
    symlinkSync(cli.path('nowhere'), cli.path('link'))
    return cli.path('link')
  },
  'below a file': (cli) => {
    writeFileSync(cli.path('file'), '')
    return cli.path('file')
  },
}

const POST = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }

test('a path that is too long for a socket is said, with what helps', async () => {
  await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
  cli.env['XDG_RUNTIME_DIR'] = cli.path('x'.repeat(120))
  const up = await cli.up()
  expect(await up.said(/no admin socket/)).toContain('set XDG_RUNTIME_DIR to a folder that belongs to you and has a short path')
})

describe.each(Object.entries(BAD))('%s', (_where, badPlace) => {
  test('a gateway is ready without its state and its socket, and names both folders and what helps', async () => {
    await using cli = await commandLine()
    const bad = badPlace(cli)
    Object.assign(cli.env, { XDG_STATE_HOME: bad, XDG_RUNTIME_DIR: bad })
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n`)
    const up = await cli.up()
    const said = (await Promise.all([up.said(/the state folder cannot be used/), up.said(/no admin socket/)])).join('\n')
    expect(said.match(/the folder \S+ cannot be made: /g)).toHaveLength(2)
    expect(said).toContain('(state.dir); state is kept in memory')
    expect(said).toContain('set XDG_RUNTIME_DIR to a folder that belongs to you')
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'server/discover', params: {} })
    expect((await fetch(up.url, { method: 'POST', headers: POST, body })).headers.get('content-type')).toBe('application/json')
    up.signal('SIGTERM')
    expect(await up.ended).toBe(0)
  })

  test('a file of a host is left as it is, since no copy of it can be kept', async () => {
    await using cli = await commandLine()
    const bad = badPlace(cli)
    Object.assign(cli.env, { XDG_STATE_HOME: bad })
    const { code, stderr } = await cli.here('add', 'a', '--', 'node', 'x.js')
    expect(stderr).toMatch(new RegExp(`no backup can be kept in ${bad}/\\S+, so nothing is changed; make that folder writable`))
    expect(code).not.toBe(0)
  })
})

test.skipIf(process.platform === 'win32')(
  'a working folder that was removed is not needed: a path that begins at the root is found',
  async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  one: ${cli.fake()}\n`)
    mkdirSync(cli.path('gone'))
    const script = `fs.rmdirSync(process.cwd()); child_process.spawnSync(process.execPath, process.argv.slice(1), { stdio: 'inherit' })`
    const program = [PROGRAM, 'call', 'one__echo', 'text=x', '-c', cli.path('trunkline.yaml')]
    const options = { cwd: cli.path('gone'), env: cli.env }
    const { stdout, stderr } = await execute(process.execPath, ['-e', script, '--', ...program], options)
    expect([stdout, stderr]).toEqual([expect.stringContaining('x'), expect.not.stringContaining('unexpected')])
  },
)

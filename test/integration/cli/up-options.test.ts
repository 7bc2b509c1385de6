/** What `up` is told on the command line: a host on its own pipe, servers of one host, whether files are watched, the dashboard. */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, test, vi } from 'vitest'
import { commandLine, INITIALIZE, message } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'

const laid = async (cli: Cli, name: string, text: string): Promise<void> => {
  await mkdir(dirname(cli.path(name)), { recursive: true })
  await writeFile(cli.path(name), text)
}
/** A file of a host with fake servers, by name; each is another one. */
const hostFile = (cli: Cli, ...names: readonly string[]): string => {
  const entryOf = (name: string): object => {
    const [, command, args] = /command: (".*?"), args: (\[.*\])/.exec(cli.fake('good', `${name}.log`)) ?? []
    return { command: JSON.parse(command ?? '') as string, args: JSON.parse(args ?? '') as string[] }
  }
  return JSON.stringify({ mcpServers: Object.fromEntries(names.map((name) => [name, entryOf(name)])) })
}
const serversOf = async (cli: Cli, ...words: readonly string[]): Promise<string[]> => {
  const { servers } = JSON.parse((await cli.here('ps', '--json', ...words)).stdout) as { servers: { key: string }[] }
  return servers.map(({ key }) => key)
}
const CURSOR = 'home/.cursor/mcp.json'
const LISTEN = ['up', '--listen', '127.0.0.1:0']

describe('up --stdio', () => {
  test('serves a host on stdin and stdout beside its listeners, and ends when that host has left', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n`)
    const up = cli.spawn([...LISTEN, '--stdio', '-c', 'trunkline.yaml'])
    const lines = createInterface({ input: up.child.stdout! })[Symbol.asyncIterator]()
    const ready = await up.said(/^trunkline is ready: /)
    up.child.stdin!.write(INITIALIZE + message(undefined, 'notifications/initialized'))
    expect(JSON.parse((await lines.next()).value as string)).toMatchObject({ id: 0, result: { protocolVersion: '2025-11-25' } })
    const listed = await fetch(ready.replace('trunkline is ready: ', ''), { method: 'POST', body: '{' })
    expect(listed.status).toBe(415)
    up.child.stdin!.write(message(1, 'tools/call', { name: 'a__echo', arguments: { text: 'hi' } }))
    up.child.stdin!.end()
    let answer: unknown
    for (let line = await lines.next(); line.done !== true; line = await lines.next())
      if (line.value.includes('"id":1')) answer = JSON.parse(line.value)
    expect(answer).toMatchObject({ result: { content: [{ text: 'hi' }] } })
    expect(await up.ended).toBe(0)
  })

  test('takes no file from the working folder, as stdio does', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
    expect(await cli.here(...LISTEN, '--stdio')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(`-c ${cli.path('trunkline.yaml')}`) as string,
    })
  })
})

describe('up --from', () => {
  test('serves what one host, or one file of a host, has, in place of the configuration', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
    await laid(cli, CURSOR, hostFile(cli, 'one'))
    await laid(cli, 'home/.claude.json', hostFile(cli, 'not-this'))
    await laid(cli, 'shared/team.json', hostFile(cli, 'two'))
    const up = await cli.up('--from', 'cursor', '--from', 'shared/team.json')
    await up.said(
      /found 2 servers in cursor, shared\/team\.json \(read-only; trunkline adapt shared\/team\.json --write saves them\)/,
    )
    expect(await serversOf(cli)).toEqual(['one', 'two'])
    expect(await cli.here('call', 'two__echo', 'text=hi')).toMatchObject({ code: 0, stdout: 'hi\n' })
  })

  test('says what is wrong with it: no such file, no server, one that cannot be used, -c beside it', async () => {
    await using cli = await commandLine({ 'empty.json': '{"mcpServers":{}}', 'half.json': '{"mcpServers":{"a":{}}}' })
    const refused = async (...words: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await cli.here(...LISTEN, ...words)
      expect({ code: code === 0, stdout }).toEqual({ code: false, stdout: '' })
      return stderr
    }
    expect(await refused('--from', 'cursr')).toBe('cursr is neither a file nor a known host; did you mean "cursor"?\n')
    expect(await refused('--from', 'none.json')).toContain('none.json cannot be read (ENOENT)')
    expect(await refused('--from', 'cursor')).toContain('cursor: no server can be used: there is none')
    expect(await refused('--from', 'empty.json')).toContain('empty.json: no server can be used: there is none')
    expect(await refused('--from', 'half.json')).toMatch(/half\.json: no server can be used: .*has neither a command nor a URL/)
    expect(await refused('--from', 'cursor', '-c', 'x.yaml')).toContain('--from and -c exclude each other')
  })
})

describe('up --watch', () => {
  test('follows a file whose reload.watch is off, and --no-watch one where it is on', async () => {
    await using cli = await commandLine()
    const file = (watch: boolean, key: string): string => `reload: { watch: ${watch} }\nservers:\n  ${key}: ${cli.fake()}\n`
    await cli.write('trunkline.yaml', file(false, 'a'))
    const following = await cli.up('--watch')
    await cli.write('trunkline.yaml', file(false, 'b'))
    await following.said(/"added":\["b"\],"removed":\["a"\]/)
    following.signal('SIGTERM')
    await following.ended
    await cli.write('trunkline.yaml', file(true, 'c'))
    const still = await cli.up('--no-watch')
    await cli.write('trunkline.yaml', file(true, 'd'))
    // Were the file watched, it would be read again by itself, and the reload that is asked for would change nothing.
    expect(JSON.parse((await cli.here('reload', '--json')).stdout)).toMatchObject({ added: ['d'], removed: ['c'] })
    expect(still.lines.filter((line) => line.includes('configuration reloaded'))).toHaveLength(1)
  })

  test('follows the files of hosts where those are served', async () => {
    await using cli = await commandLine()
    await laid(cli, CURSOR, hostFile(cli, 'one'))
    const up = await cli.up('--watch')
    await laid(cli, CURSOR, hostFile(cli, 'one', 'two'))
    await up.said(/"added":\["two"\]/)
    expect(await serversOf(cli)).toEqual(['one', 'two'])
    await laid(cli, CURSOR, '{')
    await up.said(/the new configuration is not applied/)
    expect(await serversOf(cli)).toEqual(['one', 'two'])
  })
})

describe('up --open', () => {
  test('gives the dashboard to a browser, and shows no key where no person reads', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': 'admin: { bind: 127.0.0.1:0 }\nservers: {}\n' })
    await laid(cli, 'bin/xdg-open', `#!/bin/sh\necho "$1" >${cli.path('opened')}\n`)
    await chmod(cli.path('bin/xdg-open'), 0o755)
    cli.env['PATH'] = `${cli.path('bin')}:${cli.env['PATH']}`
    const up = await cli.up('--open')
    const opened = await vi.waitUntil(
      async () => /^(http:\/\/127\.0\.0\.1:\d+)\/#k=(.+)\n$/.exec(await readFile(cli.path('opened'), 'utf8').catch(() => '')),
      { timeout: 20_000 },
    )
    const [, origin, key] = opened
    const traded = await fetch(`${origin}/api/session`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ key }),
    })
    expect(traded.status).toBe(200)
    expect(await up.said(/^ {2}UI /)).toBe(`  UI   ${origin}   (a link: trunkline open)`)
  })

  test('says where none can be started', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': 'admin: { bind: 127.0.0.1:0 }\nservers: {}\n' })
    cli.env['PATH'] = cli.path('bin')
    const up = await cli.up('--open')
    expect(await up.said(/no browser/)).toBe('       no browser can be started here: open this link in one')
  })
})

/** `trunkline logs`: what servers printed and logged, asked of the running process. */
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'

test('logs shows stderr and log messages of servers in one order, follows them, and goes on over restarts', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('chatty')}\n  quiet: ${cli.fake()}\n`)
  await using up = await cli.up()
  await up.said(/MCP/)
  expect((await cli.here('call', 'a__echo', 'text=one')).code).toBe(0)

  const { stdout } = await cli.here('logs')
  expect(stdout).not.toContain('\u001b')
  const lines = stdout.trimEnd().split('\n')
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} {2}a {6}starting$/)
  expect(lines[1]).toMatch(/a {6}warning db: \{"slow":1\}$/)
  expect(lines.at(-1)).toMatch(/a {6}echo one$/)
  expect((await cli.here('logs', 'quiet')).stdout).toBe('')
  expect((await cli.here('logs', '-n', '1', 'a')).stdout).toMatch(/^\S+ {2}a {2}echo one\n$/)

  const rows = (await cli.here('logs', '--json')).stdout.trimEnd().split('\n')
  const parsed = rows.map(
    (row) => JSON.parse(row) as { from: string; level?: string; logger?: string; at: string; number: number },
  )
  expect(parsed[1]).toMatchObject({ server: 'a', from: 'message', level: 'warning', logger: 'db', text: '{"slow":1}' })
  expect(parsed.map(({ number }) => number)).toEqual(parsed.map(({ number }) => number).toSorted((a, b) => a - b))

  expect((await cli.here('logs', '--since', '1h')).stdout).toContain('starting')
  expect((await cli.here('logs', '--since', '2099-01-01')).stdout).toBe('')
  // A time is read as it is shown, in UTC, whatever the zone of the terminal is.
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString().slice(0, 16)
  cli.env['TZ'] = 'America/New_York'
  expect((await cli.run(['logs', '--since', hourAgo])).stdout).toContain('starting')
  await using following = cli.spawn(['logs', '-f', '-n', '1', 'a'])
  const followed = createInterface({ input: following.child.stdout! })[Symbol.asyncIterator]()
  expect((await followed.next()).value).toContain('echo one')
  expect((await cli.here('restart', 'a')).code).toBe(0)
  expect((await followed.next()).value).toContain('starting')
  // What was shown before is not shown again.
  expect((await cli.here('call', 'a__echo', 'text=two')).code).toBe(0)
  let line: string
  do line = String((await followed.next()).value)
  while (!line.includes('echo'))
  expect(line).toContain('echo two')
  expect((await cli.here('logs', 'a')).stdout).toContain('echo one')

  const all = async (...args: string[]) => (await cli.here('logs', ...args)).stderr
  expect(await all('b')).toBe('no server "b" is running; known: a, quiet\n')
  expect(await all('-n', 'few')).toContain('--lines takes a number up to 10000, got "few"')
  expect(await all('--since', 'noon')).toContain('--since takes a duration such as 10m')
  up.signal('SIGTERM')
  await up.ended
  expect(await following.ended).toBe(4)
  expect(following.lines.at(-1)).toBe('the process has ended')
  expect(await cli.here('logs')).toMatchObject({ code: 4, stderr: expect.stringContaining('no process runs') as string })
}, 60_000)

test('a server that a reload removes takes its lines with it', async () => {
  await using cli = await commandLine()
  const quiet = `  quiet: ${cli.fake()}\n`
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('chatty')}\n${quiet}`)
  await using up = await cli.up()
  await up.said(/MCP/)
  expect((await cli.here('logs')).stdout).toContain('starting')
  await cli.write('trunkline.yaml', `servers:\n${quiet}`)
  expect((await cli.here('reload')).code).toBe(0)
  expect((await cli.here('logs')).stdout).toBe('')
})

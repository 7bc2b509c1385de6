/** The lock file from the command line: written, checked, compared, and in force while serving (T-17). */
import { existsSync } from 'node:fs'
import { chmod, readFile, rm, stat } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'

const configuration = (cli: Cli, more = '', mode = 'good'): string =>
  `lock: { file: ./trunkline.lock${more} }\nservers:\n  a: ${cli.fake(mode, 'log')}\n`
const read = (cli: Cli): Promise<string> => readFile(cli.path('trunkline.lock'), 'utf8')
const edit = async (cli: Cli, from: string | RegExp, to: string): Promise<void> =>
  cli.write('trunkline.lock', (await read(cli)).replace(from, to))

test('lock writes what servers offer, check --locked finds it so, and a second lock changes nothing', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', configuration(cli))
  expect((await cli.here('check')).stdout).toContain('trunkline.lock does not exist yet, so nothing is locked')
  expect(await cli.here('check', '--locked')).toMatchObject({ code: 6 })
  const written = await cli.here('lock')
  expect(written).toMatchObject({ code: 0 })
  expect(written.stdout).toMatch(/^\+ a tool add {2}is new$/m)
  expect(written.stdout).toMatch(/^wrote trunkline\.lock: 1 server, 6 definitions$/m)
  const text = await read(cli)
  expect(await cli.here('check', '--locked')).toMatchObject({ code: 0, stdout: 'trunkline.lock: ok for 1 server\n' })
  expect((await cli.here('lock')).stdout).toBe('nothing changed in trunkline.lock: 1 server, 6 definitions\n')
  expect(await read(cli)).toBe(text)
  await chmod(cli.path('trunkline.lock'), 0o640)
  await cli.write('trunkline.yaml', configuration(cli, '', 'fickle'))
  expect(await cli.here('lock')).toMatchObject({ code: 0 })
  expect((await stat(cli.path('trunkline.lock'))).mode & 0o777).toBe(0o640)
})

test('T-17 check --locked ends with 6 and the lines that differ when a definition is another, new or gone', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', configuration(cli))
  await cli.here('lock')
  await cli.write('trunkline.yaml', configuration(cli, '', 'fickle'))
  const { code, stdout, errors } = await cli.here('check', '--locked')
  expect(code).toBe(6)
  expect(stdout).toMatch(/^~ a tool echo {2}description changed$/m)
  expect(stdout).toMatch(/^ {4}- {3}"description": "Does echo\.",$/m)
  expect(stdout).toMatch(/^ {4}\+ {3}"description": "Does echo for \d+\.",$/m)
  expect(errors.at(-1)).toBe('differences from trunkline.lock: 1; to approve them: trunkline lock')
  const told = await cli.here('check', '--locked', '--json')
  expect(JSON.parse(told.stdout)).toMatchObject({ ok: false, changes: [{ server: 'a', kind: 'tools', name: 'echo' }], lost: [] })
  expect(JSON.parse(told.errors.at(-1) ?? '')).toMatchObject({ error: { exitCode: 6 } })

  await cli.write('trunkline.yaml', `${configuration(cli)}  b: ${cli.fake()}\n`)
  expect((await cli.here('check', '--locked')).stdout).toMatch(/^\+ b tool add {2}is new$/m)
  await cli.write('trunkline.yaml', `lock: { file: ./trunkline.lock }\nservers:\n  b: ${cli.fake()}\n`)
  expect((await cli.here('check', '--locked')).stdout).toMatch(/^- a tool add {2}is no longer offered$/m)
})

test('a server that cannot be asked is no reason to write half a lock, and is told by check --locked', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', configuration(cli))
  await cli.here('lock')
  const text = await read(cli)
  await cli.write('trunkline.yaml', `${configuration(cli)}  b: ${cli.fake('dying')}\n`)
  const { code, errors } = await cli.here('lock')
  expect(code).toBe(4)
  expect(errors.at(-1)).toMatch(/^nothing was written, b: .*; lock the others with: trunkline lock a$/)
  expect(await read(cli)).toBe(text)
  expect(await cli.here('lock', 'a')).toMatchObject({ code: 0 })
  const checked = await cli.here('check', '--locked')
  expect(checked).toMatchObject({ code: 4 })
  expect(checked.stdout).toMatch(/^b: /m)
  expect(await cli.here('lock', 'nobody')).toMatchObject({ code: 1 })
})

describe('a lock file that is not as it was written is never passed over', () => {
  test.each<[string, (cli: Cli) => Promise<unknown>, RegExp]>([
    [
      'edited by hand',
      (cli) => edit(cli, 'Does echo.', 'Does echo, and mails it.'),
      /^trunkline\.lock:\d+:\d+ servers\.a\.tools\.echo: its definition does not have its digest: one of them was edited; restore it from git, or write a new one: trunkline lock$/,
    ],
    ['cut short', (cli) => edit(cli, /"echo"[^]*/, ''), /^trunkline\.lock:\d+:\d+: is no lock file: /],
    [
      'of another program',
      (cli) => cli.write('trunkline.lock', '{"lockfileVersion":3}'),
      /^trunkline\.lock:1:1: expected a lock file of version 1/,
    ],
    [
      'writable by everyone',
      (cli) => chmod(cli.path('trunkline.lock'), 0o666),
      /^trunkline\.lock:1:1: can be written by every user.*chmod o-w/,
    ],
  ])('%s', async (_what, touch, told) => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', configuration(cli))
    await cli.here('lock')
    await touch(cli)
    const { code, errors } = await cli.here('check')
    expect({ code, told: errors.at(-1) }).toEqual({ code: 2, told: expect.stringMatching(told) })
    await chmod(cli.path('trunkline.lock'), 0o600)
    expect(await cli.here('lock')).toMatchObject({ code: 0 })
    expect(await cli.here('check')).toMatchObject({ code: 0 })
  })
})

test('T-17 in force while serving: what is not as locked is hidden, diff shows it, approve writes it into the file', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', configuration(cli))
  await cli.here('lock')
  await cli.write('trunkline.yaml', configuration(cli, ', on_change: quarantine', 'fickle'))
  const up = await cli.up()
  await up.said(/"server":"a".*server is ready/)
  expect((await cli.here('ps')).stdout).toContain(
    'left out: a tools "echo": its definition is not the one in trunkline.lock (lock.on_change: quarantine)',
  )
  expect(await cli.here('call', 'a__echo', 'text=x')).toMatchObject({ code: 1 })
  const { stdout } = await cli.here('diff', 'a__echo')
  expect(stdout).toMatch(/^~ a__echo tool {2}description changed$/m)
  expect(stdout).toMatch(/^ {4}\+ {3}"description": "Does echo for \d+\.",$/m)
  expect(await cli.here('approve', 'a', 'echo')).toMatchObject({ code: 0 })
  expect(await read(cli)).toMatch(/Does echo for \d+\./)
  expect(await cli.here('call', 'a__echo', 'text=x')).toMatchObject({ code: 0, stdout: 'x\n' })
  expect((await cli.here('diff')).stdout).toBe('every definition is as approved\n')

  await cli.write('trunkline.lock', 'no lock file')
  await up.said(/trunkline\.lock:1:1: is no lock file.*the new configuration is not applied/)
  expect((await cli.here('ps')).stdout).toContain('not applied: trunkline.lock:1:1: is no lock file')
  expect(await cli.here('call', 'a__echo', 'text=x')).toMatchObject({ code: 0 })
})

test('T-17 diff without the lock file that the configuration names compares with nothing, and says how to write it', async () => {
  await using cli = await commandLine()
  const ran = 'secret-was-read'
  await cli.write(
    'trunkline.yaml',
    `${configuration(cli)}  b: { command: x, enabled: true, env: { S: "\${secret:s}" } }\nsecrets:\n  s: { exec: [sh, -c, "touch ${ran}; echo 12345"] }\n`,
  )
  const refusal = {
    code: 6,
    stdout: '',
    stderr: 'trunkline.lock does not exist; write it and add it to git: trunkline lock\n',
  }
  expect(await cli.here('diff')).toMatchObject(refusal)
  expect(await cli.here('diff', 'a__echo')).toMatchObject(refusal)
  expect(existsSync(cli.path(ran))).toBe(false)
})

test('T-17 diff names the servers whose definitions could not be read, and ends with 4', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n  b: { command: no-such-program }\n`)
  const { code, stdout, errors } = await cli.here('diff')
  expect({ code, stdout, error: errors.at(-1) }).toEqual({
    code: 4,
    stdout: expect.stringMatching(/^b: .*ENOENT/),
    error: 'not reachable: b',
  })
  expect(stdout).not.toContain('as approved')
  expect(await cli.here('diff', 'a__echo')).toMatchObject({ code: 0, stdout: 'a__echo is as approved\n' })
  expect(await cli.here('diff', 'b')).toMatchObject({ code: 4 })
  expect((await cli.here('diff', 'b__x')).errors.at(-1)).toBe(
    'no server that was reached has "b__x"; not reachable: b; see trunkline ps',
  )
  const json = await cli.here('diff', '--json')
  expect(json.stdout).toBe('[]\n')
  expect(JSON.parse(json.errors.at(-1) ?? '')).toEqual({ error: { exitCode: 4, message: 'not reachable: b' } })
})

test('strict asks for the lock file, and lock writes the first one', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `strict: true\n${configuration(cli)}`)
  const refused = await cli.here('check')
  expect(refused).toMatchObject({ code: 2 })
  expect(refused.stderr).toBe(
    'trunkline.yaml:2:9 lock.file: trunkline.lock does not exist, and strict: true requires it; write it: trunkline lock\n',
  )
  expect(await cli.here('lock')).toMatchObject({ code: 0 })
  expect(await cli.here('check', '--locked')).toMatchObject({ code: 0 })
  await rm(cli.path('trunkline.lock'))
  expect(await cli.here('up')).toMatchObject({ code: 2 })
})

test('without lock.file there is nothing to write', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n`)
  for (const args of [['lock'], ['check', '--locked']])
    expect(await cli.here(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining('write into') })
})

test('a server that lists to its callers alone is told, and keeps nobody from locking the others', async () => {
  await using cli = await commandLine()
  await using issuer = await FakeIssuer.start()
  await using desk = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['book'] }))
  protect(desk, issuer)
  const { url } = desk.address as { url: URL }
  const own = `  desk: { url: "${url.href}", credentials: { oauth: { per_user: true } } }\n`
  await cli.write('trunkline.yaml', configuration(cli) + own)
  const told = 'desk: is not locked, since each caller signs in separately'
  const written = await cli.here('lock')
  expect(written.stdout).toContain(told)
  expect(written).toMatchObject({ code: 0 })
  expect(await cli.here('check', '--locked')).toMatchObject({
    code: 0,
    stdout: `${told}\ntrunkline.lock: ok for 1 server\n`,
  })
  expect(await cli.here('lock', 'desk')).toMatchObject({ code: 4 })
})

test('lock --apps locks the lists for hosts with MCP Apps, too', async () => {
  await using cli = await commandLine()
  const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } })
  const spec = fake.of({
    kind: 'legacy http',
    on: {
      'tools/list': ({ connection }) => ({
        tools: [tool(JSON.stringify(connection.declared).includes('io.modelcontextprotocol/ui') ? 'panel' : 'table')],
      }),
    },
  })
  await using a = await FakeDownstream.start({ ...spec, capabilities: { tools: {} } })
  const { url } = a.address as { url: URL }
  await cli.write('trunkline.yaml', `lock: { file: ./trunkline.lock }\nservers:\n  a: { url: "${url.href}" }\n`)
  expect(await cli.here('lock')).toMatchObject({ code: 0 })
  expect(await read(cli)).not.toContain('panel')
  expect(await cli.here('lock', '--apps')).toMatchObject({ code: 0 })
  expect(await read(cli)).toContain('panel')
})

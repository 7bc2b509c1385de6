/** A configuration that changes under a gateway that serves: by the file, by SIGHUP, by `trunkline reload`. */
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { commandLine, INITIALIZE, message } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { listening } from '../../support/listening.ts'

const starts = (cli: Cli, log: string): readonly string[] => cli.log(log).filter((line) => line.startsWith('start'))
const ends = (cli: Cli, log: string): readonly string[] => cli.log(log).filter((line) => line.startsWith('end'))

describe('a reload', () => {
  test('by the file, written right after the start, restarts only what changed', async () => {
    await using cli = await commandLine()
    const files = (env: string, extra = ''): string =>
      `servers:\n  a: ${cli.fake('good', 'a.log').replace(' }', `, env: { WORD: ${env} } }`)}\n  b: ${cli.fake('good', 'b.log')}\n${extra}`
    await cli.write('trunkline.yaml', files('one'))
    const up = await cli.up()
    await cli.write('trunkline.yaml', files('two', `  c: ${cli.fake()}\n`))
    await up.said(/"added":\["c"\],"removed":\[\],"changed":\["a"\],"msg":"configuration reloaded"/)
    await up.said(/"server":"c".*is ready/)
    expect(await cli.here('call', 'a__env', 'name=WORD')).toMatchObject({ code: 0, stdout: 'two\n' })
    expect(await cli.here('call', 'c__echo', 'text=new')).toMatchObject({ code: 0, stdout: 'new\n' })
    expect(ends(cli, 'b.log')).toEqual([])
  })

  test('that fails changes nothing, and is told by its exit code, in the log and in ps', async () => {
    await using cli = await commandLine()
    const good = `reload: { watch: false }\nservers:\n  a: ${cli.fake('good', 'log')}\n`
    await cli.write('trunkline.yaml', good)
    const up = await cli.up()
    await up.said(/is ready","?|server is ready/)
    await cli.write('trunkline.yaml', good.replace('servers:', 'nameing: {}\nservers:'))
    const { code, errors } = await cli.here('reload', '--json')
    expect(code).toBe(2)
    expect(JSON.parse(errors.at(-1) ?? '')).toMatchObject({ error: { exitCode: 2, problems: [{ place: 'trunkline.yaml:2:1' }] } })
    await up.said(/trunkline\.yaml:2:1: unknown key \\"nameing\\".*the new configuration is not applied/)
    expect(await cli.here('call', 'a__echo', 'text=still')).toMatchObject({ code: 0, stdout: 'still\n' })
    expect((await cli.here('ps')).stdout).toContain('not applied: trunkline.yaml:2:1: unknown key "nameing"')
    await cli.write('trunkline.yaml', good)
    expect(await cli.here('reload')).toMatchObject({ code: 0 })
    expect(JSON.parse((await cli.here('ps', '--json')).stdout)).toMatchObject({ problems: [] })
    expect(ends(cli, 'log')).toEqual([])
  })

  test.each([
    ['truncated', ''],
    ['cut after its first comment', '# Servers of the team\n'],
  ])('F-25 of a file that is %s keeps what is in force, and goes on when the file is whole again', async (_, text) => {
    await using cli = await commandLine()
    const whole = `# Servers of the team\nservers:\n  a: ${cli.fake('good', 'log')}\n`
    await cli.write('trunkline.yaml', whole)
    const up = await cli.up()
    await up.said(/server is ready/)
    const before = ends(cli, 'log')
    await cli.write('trunkline.yaml', text)
    await up.said(/trunkline\.yaml: the file is empty.*the new configuration is not applied/)
    expect(await cli.here('call', 'a__echo', 'text=still')).toMatchObject({ code: 0, stdout: 'still\n' })
    expect((await cli.here('plan')).code).toBe(2)
    await cli.write('trunkline.yaml', `${whole}  b: ${cli.fake()}\n`)
    await up.said(/"added":\["b"\],"removed":\[\]/)
    expect(ends(cli, 'log')).toEqual(before)
    await cli.write('trunkline.yaml', 'servers: {}\n')
    await up.said(/"removed":\["a","b"\]/)
  })

  test('F-25 of a policy file that is gone keeps what is in force; one that has no policy any more may go', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `include: [rules-*.yaml]\nservers:\n  a: ${cli.fake()}\n`)
    const rules = 'policy: { default: deny }\n'
    await cli.write('rules-one.yaml', rules)
    const up = await cli.up()
    await up.said(/server is ready/)
    const { stderr: denied } = await cli.here('call', 'a__echo', 'text=x')
    await rm(join(cli.folder, 'rules-one.yaml'))
    await up.said(/rules-one\.yaml policy: the file is gone.*the new configuration is not applied/)
    expect(await cli.here('call', 'a__echo', 'text=x')).toMatchObject({ code: 5, stderr: denied })
    expect((await cli.here('reload')).code).toBe(2)
    await cli.write('rules-two.yaml', rules)
    await up.said(/"msg":"configuration reloaded"/)
    await cli.write('rules-two.yaml', 'version: 1\n')
    await vi.waitFor(async () => expect(await cli.here('call', 'a__echo', 'text=x')).toMatchObject({ code: 0 }), {
      timeout: 20_000,
    })
    await rm(join(cli.folder, 'rules-two.yaml'))
    expect((await cli.here('reload')).code).toBe(0)
  })

  test('asked for on a terminal shows what it would change, and is applied where that is wanted', async () => {
    await using cli = await commandLine()
    const file = (more = ''): string => `reload: { watch: false }\nservers:\n  a: ${cli.fake()}\n${more}`
    await cli.write('trunkline.yaml', file())
    const up = await cli.up()
    await up.said(/server is ready/)
    expect(await cli.onTerminal(['reload'], [])).toMatchObject({ code: 0, stdout: 'reloaded; nothing changed\n' })
    await cli.write('trunkline.yaml', file(`  b: ${cli.fake()}\n`))
    const refused = await cli.onTerminal(['reload'], ['n'])
    expect(refused).toMatchObject({ code: 0, stdout: '' })
    expect(refused.stderr).toMatch(/\+ {2}server {2}b[^]*Apply\? \[Y\/n\] nothing was applied\n$/)
    expect(JSON.parse((await cli.here('ps', '--json')).stdout)).toMatchObject({ servers: { length: 1 } })
    const applied = await cli.onTerminal(['reload'], ['y'])
    expect(applied).toMatchObject({ code: 0, stdout: expect.stringMatching(/\+ {2}server {2}b/) as string })
    expect(JSON.parse((await cli.here('ps', '--json')).stdout)).toMatchObject({ servers: { length: 2 } })
    await cli.write('trunkline.yaml', file())
    const unasked = await cli.onTerminal(['reload', '--yes'], [])
    expect(unasked.stderr).not.toContain('Apply?')
    expect(unasked.stdout).toMatch(/- {2}server {2}b/)
  })

  test('by SIGHUP changes names without a restart', async () => {
    await using cli = await commandLine()
    const file = (prefix: string): string =>
      `reload: { watch: false }\nservers:\n  a: ${cli.fake('good', 'log').replace(' }', `, prefix: ${prefix}, lifecycle: { spare: 0 } }`)}\n`
    await cli.write('trunkline.yaml', file('one'))
    const up = await cli.up()
    await up.said(/server is ready/)
    const before = ends(cli, 'log')
    await cli.write('trunkline.yaml', file('two'))
    up.signal('SIGHUP')
    await up.said(/configuration reloaded/)
    expect((await cli.here('tools', 'echo')).stdout).toMatch(/^two__echo /)
    expect(ends(cli, 'log')).toEqual(before)
  })

  // A service manager takes a process for started as soon as it runs, so that a reload may follow at once.
  test.skipIf(process.platform === 'win32')('by SIGHUP during the start follows the start, and does not end it', async () => {
    await using cli = await commandLine()
    const slow = `fs.writeFileSync('asked', ''); setInterval(() => fs.existsSync('go') && (console.log('12345678'), process.exit()), 20)`
    const file = (prefix: string): string =>
      `reload: { watch: false }\nsecrets:\n  s: { exec: [${process.execPath}, -e, "${slow}"] }\nservers:\n  a: ${cli.fake().replace(' }', `, prefix: ${prefix}, env: { S: "\${secret:s}" } }`)}\n`
    await cli.write('trunkline.yaml', file('one'))
    const up = cli.spawn(['up', '--listen', '127.0.0.1:0'])
    await vi.waitFor(() => expect(existsSync(cli.path('asked'))).toBe(true))
    await cli.write('trunkline.yaml', file('two'))
    up.signal('SIGHUP')
    await cli.write('go', '')
    await up.said(/configuration reloaded/)
    await up.said(/server is ready/)
    expect((await cli.here('tools', 'echo')).stdout).toMatch(/^two__echo /)
  })

  test('lets the calls of a removed server end, then ends it', async () => {
    await using cli = await commandLine()
    const entry = cli.fake('good', 'log').replace(' }', ', lifecycle: { spare: 0 } }')
    await cli.write('trunkline.yaml', `servers:\n  a: ${entry}\n  b: ${cli.fake()}\n`)
    const up = await cli.up()
    await up.said(/"server":"a".*is ready/)
    const answer = cli.here('call', 'a__wait', '--args', JSON.stringify({ until: cli.path('go') }))
    await cli.called('log')
    await cli.write('trunkline.yaml', `servers:\n  b: ${cli.fake()}\n`)
    await up.said(/"removed":\["a"\]/)
    expect(ends(cli, 'log')).toEqual([])
    expect(await cli.here('call', 'a__echo', 'text=x')).toMatchObject({ code: 1 })
    await writeFile(cli.path('go'), '')
    expect(await answer).toMatchObject({ code: 0, stdout: 'waited\n' })
    up.signal('SIGTERM')
    expect(await up.ended).toBe(0)
    expect(ends(cli, 'log')).toHaveLength(starts(cli, 'log').length)
  })

  test('moves the listener, closes the old address, and keeps it where the new one is taken', async () => {
    await using holder = await listening(createServer())
    const taken = holder.port
    await using cli = await commandLine()
    const file = (bind: string): string => `listen: { http: { bind: "${bind}" } }\nreload: { watch: false }\nservers: {}\n`
    await cli.write('trunkline.yaml', file('127.0.0.1:0'))
    const up = cli.spawn(['up'])
    const before = (await up.said(/^trunkline is ready: /)).replace('trunkline is ready: ', '')
    await cli.write('trunkline.yaml', file(`127.0.0.1:${taken}`))
    const refused = await cli.here('reload')
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining(`127.0.0.1:${taken} listen: cannot be bound (EADDRINUSE)`),
    ])
    const status = async (): Promise<{ urls: string[] }> => JSON.parse((await cli.here('ps', '--json')).stdout) as never
    expect((await status()).urls).toEqual([before])
    await cli.write('trunkline.yaml', file('localhost:0'))
    expect(await cli.here('reload')).toMatchObject({ code: 0 })
    const [url] = (await status()).urls
    expect(url).toMatch(/^http:\/\/localhost:\d+\/mcp$/)
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'h', version: '1' } }
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    expect((await fetch(url!, { method: 'POST', headers, body })).status).toBe(200)
    // The reload does not wait until the old address is closed.
    await vi.waitFor(() => expect(fetch(before)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } }))
  })
})

test('stdio that serves by itself reloads, too', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n`)
  const serving = cli.spawn(['stdio', '-c', 'trunkline.yaml'])
  serving.child.stdin!.write(INITIALIZE + message(undefined, 'notifications/initialized'))
  await serving.said(/server is ready/)
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n  b: ${cli.fake()}\n`)
  await serving.said(/"added":\["b"\]/)
  serving.child.stdin!.end()
  expect(await serving.ended).toBe(0)
})

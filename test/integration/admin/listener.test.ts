/** The admin listener from outside: who comes in, from where, and what it answers (T-01, T-37). */
import { readFile, stat } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { hashLine, makeToken } from '../../../src/auth/inbound/static-tokens.ts'
import { exchange, isServed, openAdmin, openLink, tradeKey } from '../../support/admin.ts'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'

const yaml = (cli: Cli, more = ''): string => `servers:\n  one: ${cli.fake()}\n${more}`

const serving = async (more = ''): Promise<Cli> => {
  const cli = await commandLine()
  await cli.write('trunkline.yaml', yaml(cli, more))
  await cli.up()
  return cli
}

const BOUND = 'admin: { bind: "127.0.0.1:0" }\n'

describe('the link', () => {
  test('T-37 nothing is listened on until it is asked for, and the MCP port has none of it', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', yaml(cli))
    const { url, lines } = await cli.up()
    expect(lines.join('\n')).not.toContain('UI')
    for (const path of ['/metrics', '/api/status', '/api/session', '/ui'])
      expect((await exchange(url, 'GET', path)).status, path).toBe(404)
    const link = await openLink(cli)
    expect(link.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#k=[\w-]{43}$/)
    expect((await exchange(link.origin, 'GET', '/')).status).toBe(200)
  })

  test('its key is good for one token, and the token until it is ended', async () => {
    await using cli = await serving(BOUND)
    const { url, origin } = await openLink(cli)
    const first = await tradeKey(url)
    expect(first.json).toMatchObject({ role: 'operator', write: false, principal: 'local' })
    const second = await tradeKey(url)
    expect([second.status, second.json]).toEqual([401, { error: { code: 'key', message: expect.any(String) } }])
    const headers = { Authorization: `Bearer ${String(first.json['token'])}` }
    expect((await exchange(origin, 'GET', '/api/status', headers)).json).toMatchObject({ servers: [{ key: 'one' }] })
    expect((await exchange(origin, 'DELETE', '/api/session', headers)).status).toBe(200)
    expect((await exchange(origin, 'GET', '/api/status', headers)).status).toBe(401)
  })

  test('programs use the token of a file that only its owner can read', async () => {
    await using cli = await serving(BOUND)
    const { origin, tokenFile } = await openLink(cli)
    expect((await stat(tokenFile)).mode & 0o777).toBe(0o600)
    const token = (await readFile(tokenFile, 'utf8')).trim()
    expect((await exchange(origin, 'GET', '/api/session', { Authorization: `Bearer ${token}` })).json).toMatchObject({
      role: 'operator',
    })
  })

  test('it is refused where the dashboard is disabled', async () => {
    await using cli = await serving('ui: { enabled: false }\n')
    const { code, stderr } = await cli.here('open')
    expect([code, stderr]).toEqual([4, expect.stringContaining('ui.enabled')])
  })
})

describe('who comes in', () => {
  test('T-37 no route answers without a token, and none says what exists', async () => {
    await using cli = await serving(BOUND)
    const { origin } = await openLink(cli)
    for (const path of ['/api/status', '/api/tools', '/api/nothing', '/api/session', '/api/basis']) {
      const { status, headers, json } = await exchange(origin, 'GET', path)
      expect([path, status, headers['www-authenticate'], json]).toEqual([
        path,
        401,
        'Bearer realm="trunkline admin"',
        { error: { code: 'unauthorized', message: expect.any(String) } },
      ])
    }
    for (const Authorization of ['Bearer ', 'Bearer tlk_x', 'Basic dGxrX3g=', ''])
      expect((await exchange(origin, 'GET', '/api/status', { Authorization })).status, Authorization).toBe(401)
  })

  test('T-01 another Host and another Origin are refused, a page on another port of this machine among them', async () => {
    await using cli = await serving(BOUND)
    const { origin, ask } = await openAdmin(cli)
    for (const Host of ['evil.example', '127.0.0.1.evil.example:80', 'localhost.evil'])
      expect((await ask('GET', '/api/status', undefined, { Host })).status, Host).toBe(403)
    for (const Origin of ['https://evil.example', 'http://127.0.0.1:1', 'http://localhost:3000', 'null'])
      expect((await ask('GET', '/api/status', undefined, { Origin })).json, Origin).toMatchObject({ error: { code: 'origin' } })
    for (const site of ['cross-site', 'same-site'])
      expect((await ask('GET', '/api/status', undefined, { 'Sec-Fetch-Site': site })).status, site).toBe(403)
    expect((await ask('GET', '/api/status', undefined, { Origin: origin, 'Sec-Fetch-Site': 'same-origin' })).status).toBe(200)
    const followed = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }
    expect((await exchange(origin, 'GET', '/', followed)).status).toBe(200)
  })

  test('of those who may come in at the MCP endpoint, operators alone see the whole', async () => {
    const [operator, user] = [makeToken(), makeToken()]
    await using cli = await serving(
      `${BOUND}auth: { tokens: [{ id: op, hash: "${hashLine(operator)}", operator: true }, { id: ci, hash: "${hashLine(user)}" }] }\n`,
    )
    const { origin } = await openLink(cli)
    const asked = (token: string, path: string) => exchange(origin, 'GET', path, { Authorization: `Bearer ${token}` })
    expect((await asked(operator, '/api/session')).json).toMatchObject({ role: 'operator', principal: 'token:op' })
    expect((await asked(operator, '/api/status')).status).toBe(200)
    expect((await asked(user, '/api/session')).json).toMatchObject({ role: 'user', principal: 'token:ci', write: false })
    expect((await asked(user, '/api/status')).json).toMatchObject({ error: { code: 'operator_only' } })
  })

  test("an OAuth token is an operator's with the scope that `admin.operator_scope` names, and only with that", async () => {
    await using issuer = await startAuthorizationServer()
    const resource = 'https://mcp.example.com/mcp'
    const oauth = `{ issuer: "${issuer.issuer}", audience: "${resource}", scopes: [mcp:connect] }`
    await using cli = await serving(
      `admin: { bind: "127.0.0.1:0", operator_scope: "gateway:watch" }\nauth: { oauth: ${oauth} }\n`,
    )
    const { origin } = await openLink(cli)
    const roleOf = async (scope: string): Promise<unknown> => {
      const exp = Math.floor(Date.now() / 1_000) + 600
      const token = await issuer.sign({ iss: issuer.issuer, aud: resource, sub: 'alice', scope, exp })
      return (await exchange(origin, 'GET', '/api/session', { Authorization: `Bearer ${token}` })).json['role']
    }
    expect(await roleOf('mcp:connect gateway:watch')).toBe('operator')
    expect(await roleOf('mcp:connect trunkline:operator')).toBe('user')
  })

  test('an address that the network reaches needs auth', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', yaml(cli, 'admin: { bind: "0.0.0.0:7421" }\n'))
    const { code, stderr } = await cli.here('check')
    expect(code).toBe(2)
    expect(stderr).toMatch(/trunkline\.yaml:3:\d+ admin\.bind: 0\.0\.0\.0:7421 can be reached from the network/)
  })
})

describe('what it answers', () => {
  test('the answers of the command line, through the same functions', async () => {
    await using cli = await serving(BOUND)
    const { ask } = await openAdmin(cli)
    expect((await cli.here('call', 'one__echo', 'text=x')).stdout).toBe('x\n')
    const { tools } = (await ask('GET', '/api/tools')).json as { tools: { name: string }[] }
    expect(tools).toEqual(JSON.parse((await cli.here('tools', '--json')).stdout))
    const name = tools[0]?.name ?? ''
    expect((await ask('GET', `/api/why?name=${name}`)).json['all']).toEqual(
      JSON.parse((await cli.here('why', name, '--json')).stdout),
    )
    expect((await ask('GET', '/api/plan')).json).toMatchObject({ kind: 'planned' })
    expect((await ask('GET', '/api/basis')).status).toBe(404)
    expect((await ask('POST', '/api/open', {})).status).toBe(404)
  })

  test('nothing is changed unless ui.write allows it', async () => {
    await using cli = await serving(BOUND)
    const { ask } = await openAdmin(cli)
    for (const path of [
      '/api/restart?server=one',
      '/api/reload',
      '/api/approve?server=one',
      '/api/call?tool=one__echo',
      '/api/edit',
    ])
      expect((await ask('POST', path, {})).json, path).toMatchObject({ error: { code: 'read_only' } })
  })

  test('with ui.write a server is restarted and a tool is called', async () => {
    await using cli = await serving(`${BOUND}ui: { write: true }\n`)
    const { ask } = await openAdmin(cli)
    expect((await ask('POST', '/api/restart?server=one', {})).json).toEqual({ restarted: true })
    expect((await ask('POST', '/api/restart?server=two', {})).json).toEqual({ restarted: false })
    const form = { 'Content-Type': 'text/plain' }
    expect((await ask('POST', '/api/call?tool=one__echo', { text: 'x' }, form)).status).toBe(415)
  })

  test('a toolset or server that does not exist is 404', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `${BOUND}ui: { write: true }\nservers: { one: ${cli.fake()} }\n`)
    await cli.up()
    const { ask } = await openAdmin(cli)
    const gone = (message: string) => ({ status: 404, json: { error: { code: 'gone', message } } })
    expect(await ask('GET', '/api/tools?toolset=nothing')).toMatchObject(gone('there is no toolset "nothing"'))
    expect(await ask('POST', '/api/approve?server=nothing')).toMatchObject(gone('there is no server "nothing"'))
    expect((await ask('GET', '/api/nothing')).status).toBe(404)
    // The command line asks the same routes.
    expect((await cli.here('tools', '--toolset', 'nothing')).stderr).toContain('no toolset "nothing" is configured')
    expect((await cli.here('approve', 'nothing')).stderr).toContain('no server "nothing" is running; known: one')
  })

  test('every answer forbids inline code, frames and sniffing, and sets no cookie', async () => {
    await using cli = await serving(BOUND)
    const { origin, ask } = await openAdmin(cli)
    for (const { headers } of [await exchange(origin, 'GET', '/'), await ask('GET', '/api/status'), await ask('GET', '/api/x')]) {
      const policy = String(headers['content-security-policy'])
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("require-trusted-types-for 'script'")
      expect(policy).not.toContain('unsafe')
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
      expect(headers['set-cookie']).toBeUndefined()
    }
  })

  test('T-37 an address that the configuration does not name any more is closed, also where it was opened on demand before', async () => {
    await using cli = await serving('reload: { watch: false }\n')
    const reload = async (more: string): Promise<void> => {
      await cli.write('trunkline.yaml', yaml(cli, `${more}reload: { watch: false }\n`))
      expect((await cli.here('reload')).code).toBe(0)
    }
    const { origin } = await openLink(cli)
    await reload('ui: { write: true }\n')
    expect((await openLink(cli)).origin).toBe(origin)
    await reload('admin: { bind: "localhost:0" }\n')
    const bound = await openLink(cli)
    expect(bound.origin).not.toBe(origin)
    await reload('')
    expect(await isServed(bound.origin)).toBe(false)
  })

  test('a reload moves it to another address, and refuses one that cannot be bound', async () => {
    await using cli = await serving(BOUND)
    const { origin } = await openLink(cli)
    const { port } = new URL(origin)
    await cli.write('trunkline.yaml', yaml(cli, `admin: { bind: "localhost:0" }\nreload: { watch: false }\n`))
    expect((await cli.here('reload')).code).toBe(0)
    const moved = await openLink(cli)
    expect(new URL(moved.origin).port).not.toBe(port)
    expect([await isServed(moved.origin), await isServed(origin)]).toEqual([true, false])
    await cli.write('trunkline.yaml', yaml(cli, `admin: { bind: "192.0.2.1:7421" }\nauth: { tokens: [] }\n`))
    expect((await cli.here('reload')).code).not.toBe(0)
    expect((await openLink(cli)).origin).toBe(moved.origin)
  })
})

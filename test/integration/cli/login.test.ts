/** `trunkline login`: the operator signs in, with the running process or without one. */
import { expect, test } from 'vitest'
import { Browser } from '../../support/browser.ts'
import { hashLine } from '../../../src/auth/inbound/static-tokens.ts'
import { commandLine } from '../../support/cli.ts'
import { tokenOf } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'

const scene = async (credential = 'scopes: [read]', more = '') => {
  const issuer = await FakeIssuer.start()
  const server = await FakeDownstream.start(fake.offering('echo'))
  protect(server, issuer)
  const cli = await commandLine()
  const { url } = server.address as { url: URL }
  await cli.write(
    'trunkline.yaml',
    `${more}servers:\n  a:\n    url: ${url.href}\n    credentials: { oauth: { ${credential} } }\n`,
  )
  const stop = async (): Promise<void> => {
    for (const item of [cli, server, issuer]) await item[Symbol.asyncDispose]()
  }
  return { issuer, cli, [Symbol.asyncDispose]: stop }
}
const LINK = /^http:\/\/127\.0\.0\.1:\d+\/connect\/[\w-]{22}$/m

test('6.4 T-14 ps tells who must sign in; login prints the link and ends when somebody has; no token is shown anywhere', async () => {
  await using stage = await scene()
  const { cli } = stage
  const up = await cli.up('--listen', '127.0.0.1:0')
  await up.said(/needs sign-in/)
  expect((await cli.here('ps')).stdout).toMatch(/▲ a {2}needs sign-in .*→ trunkline login a/)
  const login = cli.spawn(['login', 'a'])
  const link = await firstLine(login.child.stdout)
  expect(link).toMatch(LINK)
  await new Browser().signIn(link)
  expect(await login.ended).toBe(0)
  await up.said(/server is ready/)
  const { stdout } = await cli.here('ps', '--json')
  expect(JSON.parse(stdout)).toMatchObject({ servers: [{ state: 'healthy', needsSignIn: false }] })
  expect(stdout + up.lines.join()).not.toMatch(/access-/)
  expect(stage.issuer.authorizations[0]?.get('scope')).toBe('read')
})

test('6.4 without a running process login opens a page of its own, and the token is there at the next start', async () => {
  await using stage = await scene()
  const { cli } = stage
  const login = cli.spawn(['login', 'a'])
  await new Browser().signIn(await firstLine(login.child.stdout))
  expect(await login.ended).toBe(0)
  expect((await cli.here('call', 'a__echo')).code).toBe(0)
  expect(stage.issuer.grants).toEqual(['authorization_code'])
})

test('6.4 a sign-in that fails ends login with 3 and says so, not that nobody has signed in', async () => {
  await using stage = await scene()
  const login = stage.cli.spawn(['login', 'a'])
  let said = ''
  login.child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  stage.issuer.away = 500
  await new Browser().signIn(await firstLine(login.child.stdout))
  expect(await login.ended).toBe(3)
  expect(said).toContain('a: sign-in failed')
  expect(said).not.toContain('not completed')
})

test('6.4 check --live ends with 3 and the command until somebody has signed in, for the operator or where all are one caller', async () => {
  for (const credential of ['per_user: true', 'per_user: false']) {
    await using stage = await scene(credential)
    const { cli } = stage
    const before = await cli.here('check', '--live', '--json')
    expect([before.code, JSON.parse(before.stdout)]).toMatchObject([3, { ok: false, servers: [{ needsSignIn: true }] }])
    expect(before.stderr).toContain('sign in with trunkline login a')
    const login = cli.spawn(['login', 'a'])
    await new Browser().signIn(await firstLine(login.child.stdout))
    expect(await login.ended).toBe(0)
    expect(await cli.here('check', '--live')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/● a {2}healthy .* 1 tool/),
    })
  }
})

test('6.4 where hosts are authenticated and each caller signs in, check --live says so and asks the operator for nothing', async () => {
  const hash = hashLine(tokenOf('A'))
  await using stage = await scene('per_user: true', `auth: { tokens: [{ id: A, hash: "${hash}" }] }\n`)
  const { code, stdout } = await stage.cli.here('check', '--live')
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^ {2}○ a {2}starting .* - .* {2}each caller signs in through its host$/m),
  ])
})

test('login of a server that nobody signs in to is an error of usage', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n`)
  const { code, stderr } = await cli.run(['login', 'a'])
  expect([code, stderr]).toEqual([1, '"a" is not a server with a sign-in; servers.a.credentials has no oauth\n'])
  expect((await cli.here('login', 'b')).stderr).toBe('"b" is not a server with a sign-in; known: a\n')
})

/** What a process prints first, on one line. */
const firstLine = async (stream: NodeJS.ReadableStream | null): Promise<string> => {
  let text = ''
  for await (const chunk of stream ?? []) {
    text += String(chunk)
    if (text.includes('\n')) break
  }
  return text.split('\n', 1)[0]!
}

/**
 * `npm run peers idp`: a real Keycloak with the realm of docs/identity, a real Chromium, and the gateway before a per-user server. A person signs in by
 * hand, from a host to the server; then the same with registration by proxy. Every step is a sentence that is printed when it was seen.
 *
 * Keycloak comes from Maven Central by `mvn`, once for all clones; it needs Java 17 and some minutes of a slow machine.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { freePort } from '../support/free-port.ts'
import type { ResourceServerOptions } from '../../src/auth/inbound/inbound-options.ts'
import { oauthOf, PER_USER } from '../support/credentials.ts'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import { modernHttp } from '../support/fake-host.ts'
import { FakeIssuer, protect } from '../support/fake-issuer.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import { toolsetOf } from '../support/toolsets.ts'
import type { TestGateway } from '../support/gateway.ts'
import { launchBrowser } from '../support/real-browser.ts'
import { madeFrom, makeOnce, run } from './languages.ts'

const VERSION = '26.4.0'
const ARTIFACT = `org.keycloak:keycloak-quarkus-dist:${VERSION}:tar.gz`
const REALM = new URL('../../docs/identity/trunkline-realm.json', import.meta.url)
const SECRET = 'change-this-secret-of-trunkline'
const START_MS = 600_000
const PASSWORD = 'a-password-of-a-test'

const folder = (): string => madeFrom(`keycloak-${VERSION}`)

/** Unpacks the distribution. Rejects where Maven or Java is missing. */
export const setUpKeycloak = (): Promise<void> =>
  makeOnce(folder(), async () => {
    await run('java', ['-version'])
    await run('mvn', [
      '-q',
      '-B',
      'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get',
      `-Dartifact=${ARTIFACT}`,
      '-Dtransitive=false',
    ])
    const archive = join(
      homedir(),
      `.m2/repository/org/keycloak/keycloak-quarkus-dist/${VERSION}/keycloak-quarkus-dist-${VERSION}.tar.gz`,
    )
    await run('tar', ['xzf', archive, '-C', folder(), '--strip-components=1'])
  })

/** A Keycloak with the realm for a gateway at `origin`, and the people alice and bob. */
const startKeycloak = async (origin: string) => {
  const port = await freePort()
  const home = await mkdtemp(join(tmpdir(), 'trunkline-keycloak-'))
  await cp(folder(), home, { recursive: true })
  await mkdir(join(home, 'data/import'), { recursive: true })
  const realm = JSON.parse((await readFile(REALM, 'utf8')).replaceAll('https://mcp.example.com', origin)) as Record<
    string,
    unknown
  >
  const users = [
    ['alice', '/dev'],
    ['bob', '/sre'],
  ].map(([username, group]) => ({
    username,
    enabled: true,
    email: `${username}@example.com`,
    firstName: username,
    lastName: 'Test',
    groups: [group],
    credentials: [{ type: 'password', value: PASSWORD }],
  }))
  await writeFile(join(home, 'data/import/trunkline-realm.json'), JSON.stringify({ ...realm, users }))
  const url = `http://127.0.0.1:${port}`
  const child = spawn(
    join(home, 'bin/kc.sh'),
    [
      'start-dev',
      '--import-realm',
      '--http-host',
      '127.0.0.1',
      '--http-port',
      String(port),
      '--hostname',
      url,
      '--cache',
      'local',
    ],
    {
      env: { ...process.env, JAVA_OPTS_APPEND: '-Xmx512m -XX:TieredStopAtLevel=1' },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const issuer = `${url}/realms/trunkline`
  const close = async (): Promise<void> => {
    stop(child)
    await rm(home, { recursive: true, force: true })
  }
  for (const endMs = Date.now() + START_MS; ; await sleep(1_000)) {
    const reply = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => undefined)
    if (reply?.status === 200) return { issuer, [Symbol.asyncDispose]: close }
    if (child.exitCode !== null || Date.now() > endMs) {
      await close()
      throw new Error(`Keycloak did not start: ${output.slice(-2_000)}`)
    }
  }
}

/** The script starts Java as a child of its own. */
const stop = (child: ChildProcess): void => {
  if (child.pid === undefined || child.exitCode !== null) return
  process.kill(-child.pid, 'SIGKILL')
}

const login = async (page: Page, user: string): Promise<void> => {
  await page.locator('#username').fill(user)
  await page.locator('#password').fill(PASSWORD)
  await page.locator('#kc-login').click()
}

interface Stage {
  readonly gateway: TestGateway
  readonly issuer: string
  readonly browser: Browser
  readonly seen: (sentence: string, isSeen: boolean) => void
}

const linkOf = (result: JsonMap): string =>
  (result['inputRequests'] as Record<string, { params: { url: string } }>)['sign-in']?.params.url ?? ''

const VERIFIER = randomBytes(32).toString('base64url')
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

/** Where the browser comes back to its host. */
const startHost = async () => {
  const returned = Promise.withResolvers<URL>()
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    if (url.pathname === '/callback') returned.resolve(url)
    response.end('back at the host')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  const redirect = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
  return { redirect, returned: returned.promise, [Symbol.asyncDispose]: close }
}

/** A host without a client at Keycloak: registers at Trunkline, its person consents and signs in. Resolves with its access token. */
const comeIn = async ({ gateway, browser, seen }: Stage, user: string, scope = 'mcp:connect'): Promise<string> => {
  await using own = await startHost()
  const { redirect } = own
  const at = (path: string): string => new URL(path, gateway.url).href
  const registered = await fetch(at('/oauth/register'), {
    method: 'POST',
    body: JSON.stringify({ client_name: 'A host', redirect_uris: [redirect] }),
  })
  const { client_id: clientId } = (await registered.json()) as { client_id: string }
  const url = new URL(at('/oauth/authorize'))
  url.search = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: redirect,
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    state: 's',
    scope,
    resource: gateway.url.href,
  }).toString()
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(url.href)
  seen(`${user}: the page of Trunkline asks whether "A host" may come in`, (await page.content()).includes('A host'))
  await page.getByRole('button', { name: 'Allow' }).click()
  await login(page, user)
  const back = await own.returned
  seen(`${user}: the host has a code, with the issuer that it asked`, back.searchParams.get('iss') === gateway.url.origin)
  const reply = await fetch(at('/oauth/token'), {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      code: back.searchParams.get('code') ?? '',
      redirect_uri: redirect,
      code_verifier: VERIFIER,
    }),
  })
  const { access_token: token = '' } = (await reply.json()) as { access_token?: string }
  seen(`${user}: the host has an access token`, token !== '')
  await context.close()
  return token
}

/** Plays everything. Resolves with what was not seen. `tell`: called with each sentence. */
export const runKeycloak = async (tell: (line: string) => void): Promise<readonly string[]> => {
  const missed: string[] = []
  const seen = (sentence: string, isSeen: boolean): void => {
    tell(`${isSeen ? 'seen' : 'NOT SEEN'}: ${sentence}`)
    if (!isSeen) missed.push(sentence)
  }
  await using stack = new AsyncDisposableStack()
  const issuerOfServer = stack.use(await FakeIssuer.start())
  const server = stack.use(await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] })))
  protect(server, issuerOfServer)
  const gateway = stack.use(
    await startGateway({
      servers: {},
      fakes: new Map([['a', server]]),
      options: { a: { credential: PER_USER } },
      early: true,
      gateway: { toolsets: [{ ...toolsetOf({ servers: ['a'] }), name: 'build' }] },
    }),
  )
  const keycloak = stack.use(await startKeycloak(gateway.url.origin))
  const facts: Partial<ResourceServerOptions> = {
    proxiesRegistration: true,
    client: {
      client: { id: 'trunkline', secret: SECRET, privateKey: undefined, algorithm: '' },
      scopes: undefined,
      sendsResource: true,
    },
  }
  const auth = {
    ...oauthOf({ issuer: keycloak.issuer }, gateway.url.href, facts),
    map: [{ claim: 'groups', issuer: undefined, has: 'dev', is: undefined, toolsets: ['build'] }],
  }
  const { configuration } = gateway.running
  await gateway.running.apply(
    { ...configuration, host: { ...configuration.host, auth }, gateway: { ...configuration.gateway, scopes: ['mcp:connect'] } },
    new Set(),
  )
  const browser = await launchBrowser()
  stack.defer(() => browser.close())
  const stage: Stage = { gateway, issuer: keycloak.issuer, browser, seen }

  const token = await comeIn(stage, 'alice')
  const able = { capabilities: { elicitation: { form: {}, url: {} } } }
  const host = stack.use(await modernHttp.connect(gateway, { ...able, token: () => token }))
  const asked = await host.call('tools/call', { name: 'a__echo', arguments: {} })
  seen('alice: her host is asked to open a page for the server', asked['resultType'] === 'input_required')
  const link = linkOf(asked)

  const phished = await browser.newContext()
  const victim = await phished.newPage()
  await victim.goto(link)
  await victim.getByRole('button', { name: 'Continue' }).click()
  await login(victim, 'bob')
  await victim.waitForURL(/connect\/identity/)
  seen('bob: the link of alice connects nothing for him', (await victim.content()).includes('another account'))
  seen('the authorization server of the server has seen nobody yet', issuerOfServer.authorizations.length === 0)
  await phished.close()

  const own = await browser.newContext()
  const page = await own.newPage()
  await page.goto(link)
  seen('alice: the page asks for no token', (await page.locator('input[type=password]').count()) === 0)
  await page.getByRole('button', { name: 'Continue' }).click()
  await login(page, 'alice')
  await page.waitForURL(/connect\/callback/)
  seen('alice: signed in at Keycloak, then at the server', (await page.content()).includes('Signed in to A'))
  await own.close()
  const answer = await host.call('tools/call', { name: 'a__echo', arguments: {} })
  seen('alice: the call of her host reaches the server', answer['resultType'] === 'complete')
  const knock = async (bearer: string): Promise<number> => {
    const headers = {
      authorization: `Bearer ${bearer}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    return (await fetch(gateway.url, { method: 'POST', headers, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })).status
  }
  const told = (claim: string): boolean =>
    gateway.log.entries.some(({ text, facts }) => text === 'a token was rejected' && facts['claim'] === claim)
  const sre = await comeIn(stage, 'bob')
  seen('bob: no rule of auth.map knows his group, and the log names the claim', (await knock(sre)) === 403 && told('groups'))
  const foreign = await comeIn(stage, 'bob', 'openid')
  seen(
    'bob: a token without the scope of Trunkline is refused, and the log names "aud"',
    (await knock(foreign)) === 401 && told('aud'),
  )
  seen('no token is in the log', !JSON.stringify(gateway.log.entries).includes(token))
  return missed
}

/** People prove at the issuer of the callers who they are before they sign in to a server: nothing binds one person's account to another's session (B248, T-08). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startAuthorizationServer, TRUNKLINE } from '../../support/authorization-server.ts'
import type { AuthorizationServer, User } from '../../support/authorization-server.ts'
import { Browser } from '../../support/browser.ts'
import type { Visited } from '../../support/browser.ts'
import { oauthOf, PER_USER } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'

const CLIENT = {
  client: { id: TRUNKLINE.id, secret: TRUNKLINE.secret, privateKey: undefined, algorithm: '' },
  scopes: undefined,
  sendsResource: true,
}
const able = { capabilities: { elicitation: { form: {}, url: {} } } }
const SIGN_IN = { name: 'a__sign_in' }

let idp: AuthorizationServer
beforeAll(async () => {
  idp = await startAuthorizationServer()
})
afterAll(() => idp[Symbol.asyncDispose]())

const names = ({ tools }: JsonMap): unknown[] => (tools as JsonMap[]).map(({ name }) => name)
/** Whether a call reaches the server. One that follows a sign-in waits for the lists. */
const isConnected = async (host: { call(method: string, params: JsonMap): Promise<JsonMap> }): Promise<boolean> =>
  (await host.call('tools/call', { name: 'a__echo', arguments: {} }))['resultType'] === 'complete'
const linkOf = (result: JsonMap): string =>
  (result['inputRequests'] as Record<string, { params: { url: string } }>)['sign-in']?.params.url ?? ''

/** A per-user server `a`, a gateway whose callers are those of `idp`, and a host of each user. */
const scene = async () => {
  const issuer = await FakeIssuer.start()
  const server = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] }))
  protect(server, issuer)
  const gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', server]]),
    options: { a: { credential: PER_USER } },
    early: true,
  })
  const { running, url } = gateway
  const { configuration } = running
  const auth = oauthOf(idp, url.href, { client: CLIENT })
  await running.apply(
    { ...configuration, host: { ...configuration.host, auth }, gateway: { ...configuration.gateway, scopes: ['mcp:connect'] } },
    new Set(),
  )
  const hostOf = async (user: User) => {
    const { access_token: token } = await idp.userToken(user, { resource: url.href })
    return modernHttp.connect(gateway, { ...able, token: () => token })
  }
  const close = async (): Promise<void> => {
    for (const item of [gateway, server, issuer]) await item[Symbol.asyncDispose]()
  }
  return { issuer, gateway, hostOf, [Symbol.asyncDispose]: close }
}

/** Presses the button of a page and stops at the issuer. */
const leave = async (browser: Browser, { url, text }: Visited): Promise<URL> => {
  const [, action = ''] = /<form method="post" action="([^"]*)"/.exec(text) ?? []
  const fields = [...text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(
    ([, name = '', value = '']): [string, string] => [name, value],
  )
  const reply = await browser.step(new URL(action, url), new URLSearchParams(fields))
  expect(reply.status).toBe(303)
  return new URL(reply.headers.get('location') ?? '')
}

/** Where the issuer sends the browser of `user` back to. */
const atIssuer = async (browser: Browser, link: string, user: User): Promise<URL> =>
  idp.signIn(await leave(browser, await browser.open(link)), user)

test('6.4 the person signs in at the issuer, without a token, and then at the server; the caller has the server from then on', async () => {
  await using stage = await scene()
  await using alice = await stage.hostOf('alice')
  const browser = new Browser()
  const page = await browser.open(linkOf(await alice.call('tools/call', SIGN_IN)))
  expect(page.text).not.toContain('type="password"')
  expect(page.text).toContain(new URL(idp.issuer).host)
  const target = await leave(browser, page)
  expect(Object.fromEntries(target.searchParams)).toMatchObject({
    client_id: TRUNKLINE.id,
    response_type: 'code',
    code_challenge_method: 'S256',
    scope: 'openid',
    redirect_uri: new URL('/connect/identity', stage.gateway.url).href,
  })
  const ended = await browser.open(await idp.signIn(target, 'alice'))
  expect([ended.status, ended.text]).toEqual([200, expect.stringContaining('Signed in to A')])
  expect(await isConnected(alice)).toBe(true)
  await using bob = await stage.hostOf('bob')
  expect(names(await bob.call('tools/list'))).toEqual(['a__sign_in'])
  // Nothing of the issuer reached the server's authorization server, and nothing of either the log.
  expect(JSON.stringify(stage.issuer.authorizations.map(String))).not.toContain(TRUNKLINE.id)
})

describe('T-08 attacks', () => {
  test('a phishing link: the person who follows it is another than its sender, and nothing is connected for either', async () => {
    await using stage = await scene()
    await using mallory = await stage.hostOf('bob')
    const link = linkOf(await mallory.call('tools/call', SIGN_IN))
    const victim = new Browser()
    const page = await victim.open(await atIssuer(victim, link, 'alice'))
    expect([page.status, page.text]).toEqual([403, expect.stringContaining('another account')])
    expect(stage.issuer.authorizations).toEqual([])
    await using alice = await stage.hostOf('alice')
    for (const host of [mallory, alice]) expect(names(await host.call('tools/list'))).toEqual(['a__sign_in'])
  })

  test('a different user signed in at the issuer may choose the right account, and is asked to by the page', async () => {
    await using stage = await scene()
    await using alice = await stage.hostOf('alice')
    const link = linkOf(await alice.call('tools/call', SIGN_IN))
    const browser = new Browser()
    const refused = await browser.open(await atIssuer(browser, link, 'carol'))
    const again = await leave(browser, refused)
    expect(again.searchParams.get('prompt')).toBe('login')
    expect((await browser.open(await idp.signIn(again, 'alice'))).text).toContain('Signed in to A')
    expect(await isConnected(alice)).toBe(true)
  })

  test('the way back is good once, and only in the browser that went', async () => {
    await using stage = await scene()
    await using alice = await stage.hostOf('alice')
    const link = linkOf(await alice.call('tools/call', SIGN_IN))
    const [own, other] = [new Browser(), new Browser()]
    const back = await atIssuer(own, link, 'alice')
    // Sent to a victim before the sender uses it: another browser, with and without a mark of its own.
    expect((await other.open(back)).status).toBe(400)
    await other.open(link)
    expect((await other.open(back)).status).toBe(400)
    expect(stage.issuer.authorizations).toEqual([])
    expect((await own.open(back)).status).toBe(200)
    expect((await own.open(back)).status).toBe(400)
    expect((await own.open(link)).status).toBe(404)
    expect(stage.issuer.grants).toEqual(['authorization_code'])
  })

  test('a victim who is sent on to the server by a sender who proved to be itself connects nothing', async () => {
    await using stage = await scene()
    await using mallory = await stage.hostOf('bob')
    const link = linkOf(await mallory.call('tools/call', SIGN_IN))
    const [sender, victim] = [new Browser(), new Browser()]
    const proven = await sender.step(await atIssuer(sender, link, 'bob'))
    const away = proven.headers.get('location') ?? ''
    expect(away).toContain('/authorize')
    expect((await victim.open(away)).status).toBe(400)
    expect(stage.issuer.grants).toEqual([])
    expect(names(await mallory.call('tools/list'))).toEqual(['a__sign_in'])
  })

  test('the way back from the issuer is good once, also while the way to the server is open', async () => {
    await using stage = await scene()
    await using alice = await stage.hostOf('alice')
    const browser = new Browser()
    const back = await atIssuer(browser, linkOf(await alice.call('tools/call', SIGN_IN)), 'alice')
    expect((await browser.step(back)).status).toBe(303)
    expect((await browser.step(back)).status).toBe(400)
  })

  test('two tabs of one browser: each may go, one connects, and the other is told that the link is used', async () => {
    await using stage = await scene()
    await using alice = await stage.hostOf('alice')
    const link = linkOf(await alice.call('tools/call', SIGN_IN))
    const browser = new Browser()
    const [first, second] = [await atIssuer(browser, link, 'alice'), await atIssuer(browser, link, 'alice')]
    expect((await browser.open(second)).text).toContain('Signed in to A')
    expect((await browser.open(first)).status).toBe(400)
    expect(stage.issuer.grants).toEqual(['authorization_code'])
    expect(await isConnected(alice)).toBe(true)
  })

  test('two links in two tabs of one browser stay apart', async () => {
    await using stage = await scene()
    await using alice = await stage.hostOf('alice')
    await using bob = await stage.hostOf('bob')
    const browser = new Browser()
    const ofAlice = await atIssuer(browser, linkOf(await alice.call('tools/call', SIGN_IN)), 'alice')
    const ofBob = await atIssuer(browser, linkOf(await bob.call('tools/call', SIGN_IN)), 'alice')
    expect((await browser.open(ofBob)).status).toBe(403)
    expect((await browser.open(ofAlice)).text).toContain('Signed in to A')
    expect(await isConnected(alice)).toBe(true)
    expect(names(await bob.call('tools/list'))).toEqual(['a__sign_in'])
  })

  test.each([
    ['an answer without a code', (url: URL) => url.searchParams.delete('code')],
    ['the code of another journey', (url: URL) => url.searchParams.set('code', 'stolen')],
    ['an answer of another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.test')],
    ['a refusal', (url: URL) => url.searchParams.set('error', 'access_denied')],
  ])('%s proves nothing', async (_name, alter) => {
    await using stage = await scene()
    await using alice = await stage.hostOf('alice')
    const browser = new Browser()
    const back = await atIssuer(browser, linkOf(await alice.call('tools/call', SIGN_IN)), 'alice')
    alter(back)
    expect((await browser.open(back)).status).toBe(502)
    expect(stage.issuer.authorizations).toEqual([])
  })

  test('a token in the form counts for nothing where the issuer is to be asked', async () => {
    await using stage = await scene()
    await using alice = await stage.hostOf('alice')
    const browser = new Browser()
    const page = await browser.open(linkOf(await alice.call('tools/call', SIGN_IN)))
    const mark = /name="mark" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
    const { access_token: proof } = await idp.userToken('alice', { resource: stage.gateway.url.href })
    const reply = await browser.step(page.url, new URLSearchParams({ mark, proof }))
    expect(new URL(reply.headers.get('location') ?? '').origin).toBe(idp.issuer)
  })
})

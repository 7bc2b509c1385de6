/**
 * A person at a real provider and in a real browser, before a server at which each caller signs in: alone, by the link of another
 * person, and with a token that Trunkline refuses.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Browser, BrowserContext } from 'playwright-core'
import { modernHttp } from '../../support/fake-host.ts'
import type { FakeIssuer } from '../../support/fake-issuer.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { awaitCode } from './hosts/callback.ts'
import type { Person, ProviderKind } from './provider.ts'

export interface Stage {
  readonly kind: ProviderKind
  readonly gateway: TestGateway
  readonly browser: Browser
  /** The authorization server of the per-user server `personal`. */
  readonly issuerOfServer: FakeIssuer
  readonly seen: (sentence: string, isSeen: boolean) => void
}

const VERIFIER = randomBytes(32).toString('base64url')
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

const linkOf = (result: JsonMap): string =>
  (result['inputRequests'] as Record<string, { params: { url: string } }>)['sign-in']?.params.url ?? ''

/** Does `work` in a window of its own, without cookies. */
const inWindow = async <T>({ browser }: Stage, work: (context: BrowserContext) => Promise<T>): Promise<T> => {
  const context = await browser.newContext()
  try {
    return await work(context)
  } finally {
    await context.close()
  }
}

/** A host without a client at the provider: registers at Trunkline, its person consents and signs in. Resolves with its access token. */
const comeIn = async (stage: Stage, person: Person, scope = 'mcp:connect'): Promise<string> => {
  const { gateway, kind, seen } = stage
  await using own = await awaitCode()
  const { redirect } = own
  const at = (path: string): string => new URL(path, gateway.url).href
  const metadata = { client_name: 'A host', redirect_uris: [redirect] }
  const registered = await fetch(at('/oauth/register'), { method: 'POST', body: JSON.stringify(metadata) })
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
  const back = await inWindow(stage, async (context) => {
    const page = await context.newPage()
    await page.goto(url.href)
    seen(`${person}: the page of Trunkline asks whether "A host" may come in`, (await page.content()).includes('A host'))
    await page.getByRole('button', { name: 'Allow' }).click()
    await kind.login(page, person)
    await page.getByText('back at the host').waitFor()
    return await own.returned
  })
  seen(`${person}: the host has a code, with the issuer that it asked`, back.searchParams.get('iss') === gateway.url.origin)
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    client_id: clientId,
    code: back.searchParams.get('code') ?? '',
    redirect_uri: redirect,
    code_verifier: VERIFIER,
  })
  const { access_token: token = '' } = (await (await fetch(at('/oauth/token'), { method: 'POST', body })).json()) as {
    access_token?: string
  }
  seen(`${person}: the host has an access token`, token !== '')
  return token
}

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'host', version: '1' } },
})

/** The status of a handshake with this token. */
const knock = async ({ gateway }: Stage, token: string): Promise<number> => {
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  return (await fetch(gateway.url, { method: 'POST', headers, body: INITIALIZE })).status
}

export const playPeople = async (stage: Stage): Promise<void> => {
  const { kind, gateway, issuerOfServer, seen } = stage
  const token = await comeIn(stage, 'bob')
  const able = { capabilities: { elicitation: { form: {}, url: {} } } }
  await using host = await modernHttp.connect(gateway, { ...able, token: () => token })
  const call = (): Promise<JsonMap> => host.call('tools/call', { name: 'personal__echo', arguments: {} })
  const asked = await call()
  seen('bob: his host is asked to open a page for the server', asked['resultType'] === 'input_required')
  const link = linkOf(asked)

  await inWindow(stage, async (context) => {
    const page = await context.newPage()
    await page.goto(link)
    await page.getByRole('button', { name: 'Continue' }).click()
    await kind.login(page, 'alice')
    await page.waitForURL(/connect\/identity/)
    seen('alice: the link of bob connects nothing for her', (await page.content()).includes('another account'))
  })
  seen('the authorization server of the server has seen nothing yet', issuerOfServer.authorizations.length === 0)

  await inWindow(stage, async (context) => {
    const page = await context.newPage()
    await page.goto(link)
    seen('bob: the page asks for no token', (await page.locator('input[type=password]').count()) === 0)
    await page.getByRole('button', { name: 'Continue' }).click()
    await kind.login(page, 'bob')
    await page.waitForURL(/connect\/callback/)
    seen('bob: signed in at the provider, then at the server', (await page.content()).includes('Signed in to Personal'))
  })
  seen('bob: the call of his host reaches the server', (await call())['resultType'] === 'complete')
  if (kind.name === 'keycloak') await playKeycloak(stage)
  seen('no token is in the log', !JSON.stringify(gateway.log.entries).includes(token))
}

/** What depends on the groups, roles and scopes of the realm. */
const playKeycloak = async (stage: Stage): Promise<void> => {
  const { gateway, seen } = stage
  const isLogged = (claim: string): boolean =>
    gateway.log.entries.some(({ text, facts }) => text === 'a token was rejected' && facts['claim'] === claim)
  const reviewer = await comeIn(stage, 'alice')
  seen('alice: her realm role gives her a toolset', (await knock(stage, reviewer)) === 200)
  const unmapped = await comeIn(stage, 'carol')
  const status = await knock(stage, unmapped)
  seen(
    'carol: no rule of auth.map knows her groups and roles, and the log names the claims',
    status === 403 && isLogged('groups'),
  )
  const foreign = await comeIn(stage, 'bob', 'openid')
  seen(
    'bob: a token without the scope of Trunkline is refused, and the log names "aud"',
    (await knock(stage, foreign)) === 401 && isLogged('aud'),
  )
}

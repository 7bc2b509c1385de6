/** Servers where each caller signs in for itself: how a host's person gets there, and who gets nowhere (BRIDGING 6.2–6.4; T-07, T-08, T-14). */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filter, firstValueFrom } from 'rxjs'
import { describe, expect, test, vi } from 'vitest'
import { operatorCommand } from '../../../src/operator-command.ts'
import { statsOf } from '../../../src/admin/calls/stats.ts'
import { metricsText } from '../../../src/admin/state/metrics.ts'
import { serverStatuses } from '../../../src/admin/state/status.ts'
import { formatLines } from '../../../src/commands/terminal/print.ts'
import { serverLines } from '../../../src/commands/terminal/table.ts'
import { Browser } from '../../support/browser.ts'
import { curated } from '../../support/curation.ts'
import { PER_USER, tokenOf, TWO_TOKENS } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import type { FakeKind } from '../../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../../support/fake-host.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import type { FakeIssuerOptions } from '../../support/fake-issuer.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { toolsetOf } from '../../support/toolsets.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'

const able = { capabilities: { elicitation: { form: {}, url: {} } } }
const SIGN_IN = { name: 'a__sign_in' }

interface Scene extends AsyncDisposable {
  readonly issuer: FakeIssuer
  readonly server: FakeDownstream
  readonly gateway: TestGateway
}

/** A server `a` behind an authorization server, and a gateway before it. */
const scene = async (
  more: Partial<GatewaySetup> & {
    kind?: FakeKind
    issuer?: FakeIssuerOptions
    scopeOf?: (method: string) => string | undefined
  } = {},
): Promise<Scene> => {
  const { kind = 'modern http', issuer: facts, scopeOf, ...setup } = more
  const issuer = await FakeIssuer.start(facts)
  const server = await FakeDownstream.start(fake.of({ kind, tools: ['echo'] }))
  protect(server, issuer, scopeOf)
  const gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', server]]),
    options: { a: { credential: PER_USER } },
    ...setup,
  })
  return {
    issuer,
    server,
    gateway,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}

const names = ({ tools }: JsonMap): unknown[] => (tools as JsonMap[]).map(({ name }) => name)
/** The link that a modern host is asked to open. */
const linkOf = (result: JsonMap): string => {
  const { 'sign-in': question } = result['inputRequests'] as Record<string, { params: { url: string } }>
  return question!.params.url
}
const back = (result: JsonMap, action = 'accept') => ({
  requestState: result['requestState'],
  inputResponses: { 'sign-in': { action } },
})
const proofOf = (text: string, letter: string): URLSearchParams =>
  new URLSearchParams({ mark: /name="mark" value="([^"]*)"/.exec(text)?.[1] ?? '', proof: tokenOf(letter) })

describe.each(['modern http', 'legacy http', 'legacy sse'] as const)('a %s server that nobody has signed in to', (kind) => {
  test('6.4 a modern host is asked to open a page, and its call goes on when the person is back', async () => {
    await using stage = await scene({ kind })
    await using host = await modernHttp.connect(stage.gateway, able)
    expect(names(await host.call('tools/list'))).toEqual(['a__sign_in'])
    const asked = await host.call('tools/call', SIGN_IN)
    expect(asked).toMatchObject({ resultType: 'input_required' })
    const page = await new Browser().signIn(linkOf(asked))
    expect(page.text).toContain('Signed in to A')
    expect(await host.call('tools/call', { ...SIGN_IN, ...back(asked) })).toMatchObject({ resultType: 'complete' })
    expect(names(await host.call('tools/list'))).toEqual(['a__echo'])
    await host.call('tools/call', { name: 'a__echo', arguments: {} })
    expect(stage.issuer.grants).toEqual(['authorization_code'])
  })
})

describe('B279 a tool of a server that nobody has signed in to, called by the name it will have', () => {
  const ECHO = { name: 'a__echo', arguments: {} }

  test('a modern host is asked to open a page, and the same call goes on when the person is back', async () => {
    await using stage = await scene()
    await using host = await modernHttp.connect(stage.gateway, able)
    const asked = await host.call('tools/call', ECHO)
    expect(asked).toMatchObject({ resultType: 'input_required' })
    await new Browser().signIn(linkOf(asked))
    expect(await host.call('tools/call', { ...ECHO, ...back(asked) })).toMatchObject({ content: [{ text: '{}' }] })
  })

  test.each([
    ['another name', { echo: { name: 'say' } }, 'a__say'],
    ['the name of another tool', { echo: { name: 'other' }, other: { name: 'echo' } }, 'a__other'],
  ])(
    'a tool to which the configuration gives %s is called after the sign-in, with its pinned argument',
    async (_, tools, name) => {
      const entry = await curated({ tools: { ...tools, echo: { ...tools.echo, args: { n: { value: 1 } } } } })
      await using stage = await scene({ options: { a: { credential: PER_USER, ...entry } } })
      stage.server.offers.tools.push({ name: 'other', inputSchema: { type: 'object' } })
      await using host = await modernHttp.connect(stage.gateway, able)
      const call = { name, arguments: {} }
      const asked = await host.call('tools/call', call)
      await new Browser().signIn(linkOf(asked))
      expect(await host.call('tools/call', { ...call, ...back(asked) })).toMatchObject({ content: [{ text: '{"n":1}' }] })
      expect(stage.server.all('tools/call').map(({ params }) => params['name'])).toEqual(['echo'])
    },
  )

  test('a call that follows the sign-in at once waits for the lists, and a name that is not in them is unknown', async () => {
    await using stage = await scene()
    await using host = await modernHttp.connect(stage.gateway, able)
    const asked = await host.call('tools/call', SIGN_IN)
    const signing = new Browser().signIn(linkOf(asked))
    let answer: JsonMap
    do answer = await host.call('tools/call', ECHO)
    while (answer['resultType'] === 'input_required')
    expect(answer).toMatchObject({ content: [{ text: '{}' }] })
    await signing
    await expect(host.call('tools/call', { name: 'z__nope', arguments: {} })).rejects.toMatchObject({ code: -32602 })
  })

  test('a person who declines has declined, and a host without pages is told the link', async () => {
    await using stage = await scene()
    await using host = await modernHttp.connect(stage.gateway, able)
    const asked = await host.call('tools/call', ECHO)
    expect(await host.call('tools/call', { ...ECHO, ...back(asked, 'decline') })).toMatchObject({
      isError: true,
      content: [{ text: 'A: the sign-in was declined' }],
    })
    await using plain = await legacyHttp.connect(stage.gateway)
    expect(await plain.call('tools/call', ECHO)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^Sign in to A is needed: open http/) as string }],
    })
  })
})

test('6.4 a host of 2025-11-25 is asked on the stream of its call, and hears when that is done', async () => {
  await using stage = await scene()
  await using host = await legacyHttp.connect(stage.gateway, able)
  const browser = new Browser()
  const ids: unknown[] = []
  host.answer('elicitation/create', ({ url, elicitationId }) => {
    ids.push(elicitationId)
    void browser.signIn(String(url))
    return { action: 'accept' }
  })
  const result = await host.call('tools/call', SIGN_IN)
  expect(JSON.stringify(result)).toContain('Signed in to A')
  const done = await host.heard.until(({ method }) => method === 'notifications/elicitation/complete')
  expect(done.params).toEqual({ elicitationId: ids[0] })
})

test('6.4 a person who is quicker than the host is waited for no longer, though the tool is listed no more', async () => {
  await using stage = await scene()
  await using host = await legacyHttp.connect(stage.gateway, able)
  const changed = host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
  const browser = new Browser()
  host.answer('elicitation/create', async ({ url }) => {
    await browser.signIn(String(url))
    await changed
    return { action: 'accept' }
  })
  expect(JSON.stringify(await host.call('tools/call', SIGN_IN))).toContain('Signed in to A')
})

test('6.4 a toolset that names some tools of a server lets its callers sign in there', async () => {
  const some = { ...toolsetOf({ servers: ['a'], tools: ['a__ec*'] }), name: 'few' }
  await using stage = await scene({ gateway: { toolsets: [some] } })
  await using host = await modernHttp.connect(stage.gateway, { ...able, toolset: 'few' })
  expect(names(await host.call('tools/list'))).toEqual(['a__sign_in'])
})

test.each([
  ['2025-06-18', legacyHttp],
  ['2026-07-28 without URL elicitation', modernHttp],
] as const)('B239 a host of %s is told the link in an answer that is no 401 of ours', async (_name, { connect }) => {
  await using stage = await scene()
  await using host = await connect(stage.gateway, { revision: '2025-06-18' })
  const result = await host.call('tools/call', SIGN_IN)
  expect(result).toMatchObject({ isError: true })
  expect(JSON.stringify(result)).toMatch(/Sign in to A is needed: open http:\/\/127\.0\.0\.1:\d+\/connect\/[\w-]{22}"/)
})

test('6.4 a person who declines ends the call, and nobody is sent anywhere', async () => {
  await using stage = await scene()
  await using host = await modernHttp.connect(stage.gateway, able)
  const asked = await host.call('tools/call', SIGN_IN)
  const result = await host.call('tools/call', { ...SIGN_IN, ...back(asked, 'decline') })
  expect(result).toMatchObject({ isError: true })
  expect(stage.issuer.authorizations).toEqual([])
})

describe('a token that the server takes no more', () => {
  const signedIn = async (more: Parameters<typeof scene>[0] = {}) => {
    const stage = await scene(more)
    const host = await modernHttp.connect(stage.gateway, able)
    const asked = await host.call('tools/call', SIGN_IN)
    await new Browser().signIn(linkOf(asked))
    await host.call('tools/call', { ...SIGN_IN, ...back(asked) })
    return { ...stage, host }
  }
  const leave = async ({ host, gateway, server, issuer }: Scene & { host: AsyncDisposable }): Promise<void> => {
    for (const item of [host, gateway, server, issuer]) await item[Symbol.asyncDispose]()
  }

  test('F-17 is renewed once for fifty calls that find it expired, and all of them succeed', async () => {
    const stage = await signedIn()
    stage.issuer.expire()
    const calls = Array.from({ length: 50 }, () => stage.host.call('tools/call', { name: 'a__echo', arguments: {} }))
    for (const result of await Promise.all(calls)) expect(result['isError']).not.toBe(true)
    expect(stage.issuer.grants).toEqual(['authorization_code', 'refresh_token'])
    await leave(stage)
  })

  test('6.4 asks the person again where it cannot be renewed, and the call goes on afterwards', async () => {
    const stage = await signedIn()
    stage.issuer.revoke()
    stage.issuer.expire()
    const call = { name: 'a__echo', arguments: {} }
    const asked = await stage.host.call('tools/call', call)
    await new Browser().signIn(linkOf(asked))
    expect(await stage.host.call('tools/call', { ...call, ...back(asked) })).toMatchObject({ resultType: 'complete' })
    await leave(stage)
  })

  test.each(['modern http', 'legacy http'] as const)(
    '6.4 that cannot be renewed shows in ps and in the log with the reason, and in the list, while the connection to the %s server is open',
    async (kind) => {
      const stage = await signedIn({ kind })
      const { log, running } = stage.gateway
      const status = () => serverStatuses(running)[0]
      stage.issuer.revoke()
      stage.issuer.expire()
      const call = { name: 'a__echo', arguments: {} }
      const asked = await stage.host.call('tools/call', call)
      await vi.waitFor(() => expect(status()).toMatchObject({ state: 'failed', needsSignIn: true }))
      const reason = 'needs sign-in: the sign-in has ended: the authorization server refused: "invalid_grant"'
      expect(log.entries.filter(({ text }) => text.startsWith(reason)).map(({ level }) => level)).toEqual(['info'])
      expect(names(await stage.host.call('tools/list'))).toEqual(['a__sign_in'])
      await new Browser().signIn(linkOf(asked))
      expect(await stage.host.call('tools/call', { ...call, ...back(asked) })).toMatchObject({ resultType: 'complete' })
      expect(names(await stage.host.call('tools/list'))).toEqual(['a__echo'])
      expect(status()).toMatchObject({ state: 'healthy', needsSignIn: false })
      await leave(stage)
    },
  )

  test('6.4 that has ended stays asked for, also after a reload that reads definitions with another policy', async () => {
    const stage = await signedIn()
    stage.issuer.revoke()
    stage.issuer.expire()
    const { fleet, configuration } = stage.gateway.running
    const own = fleet.get('a')?.personal?.all[0]
    await own?.link?.close()
    await firstValueFrom(own!.health$.pipe(filter(({ state }) => state === 'failed')))
    expect(names(await stage.host.call('tools/list'))).toEqual(['a__sign_in'])
    const servers = configuration.servers.map((server) => ({ ...server, hidden: 'strip' as const }))
    await stage.gateway.running.apply({ ...configuration, servers }, new Set())
    expect(names(await stage.host.call('tools/list'))).toEqual(['a__sign_in'])
    await leave(stage)
  })

  test('B247 that reaches not far enough is asked for again with all scopes so far, twice at most', async () => {
    const wanted = (method: string) => (method === 'tools/call' ? 'write' : 'read')
    const stage = await signedIn({ scopeOf: wanted })
    const call = { name: 'a__echo', arguments: {} }
    const asked = await stage.host.call('tools/call', call)
    await new Browser().signIn(linkOf(asked))
    expect(await stage.host.call('tools/call', { ...call, ...back(asked) })).toMatchObject({ resultType: 'complete' })
    expect(stage.issuer.authorizations.map((params) => params.get('scope'))).toEqual(['read', 'read write'])
    await leave(stage)
  })
})

describe('two callers', () => {
  test('B250 B235 T-07 each uses its own token and sees its own lists; no token of a host goes to a server', async () => {
    await using stage = await scene({ host: { auth: TWO_TOKENS } })
    await using a = await modernHttp.connect(stage.gateway, { ...able, token: () => tokenOf('A') })
    await using b = await modernHttp.connect(stage.gateway, { ...able, token: () => tokenOf('B') })
    const sent: (string | undefined)[] = []
    const guard = stage.server.intercept
    stage.server.intercept = (request, response, body) => {
      sent.push(JSON.stringify(request.headers) + body)
      return guard(request, response, body)
    }
    const status = () => serverStatuses(stage.gateway.running)[0]
    const signIn = async (host: typeof a, letter: string) => {
      const asked = await host.call('tools/call', SIGN_IN)
      const browser = new Browser()
      const page = await browser.open(linkOf(asked))
      const reply = await browser.step(page.url, proofOf(page.text, letter))
      expect((await browser.open(reply.headers.get('location') ?? '')).text).toContain('Signed in')
      await host.call('tools/call', { ...SIGN_IN, ...back(asked) })
    }
    await signIn(a, 'A')
    expect([names(await a.call('tools/list')), names(await b.call('tools/list'))]).toEqual([['a__echo'], ['a__sign_in']])
    expect(await b.call('tools/call', { name: 'a__echo' })).toMatchObject({ resultType: 'input_required' })
    expect(status()).toMatchObject({ state: 'healthy', needsSignIn: false, callers: { all: 2, unsigned: 1 }, links: 1 })
    await signIn(b, 'B')
    expect(status()).toMatchObject({ callers: { all: 2, unsigned: 0 }, links: 2 })
    sent.length = 0
    await a.call('tools/call', { name: 'a__echo', arguments: {} })
    await b.call('tools/call', { name: 'a__echo', arguments: {} })
    const tokens = sent.flatMap((text) => /"authorization":"Bearer (access-[^"]+)"/.exec(text ?? '')?.[1] ?? [])
    expect(new Set(tokens).size).toBe(2)
    expect(sent.join()).not.toContain('tlk_')
  })

  test('T-37 B250 metrics and figures have the state that ps shows, and a caller who has not signed in is no outage', async () => {
    await using stage = await scene({ host: { auth: TWO_TOKENS } })
    const { running } = stage.gateway
    const shown = () => {
      const text = metricsText(running, false)
      const states = [...text.matchAll(/^trunkline_server_state\{server="a",state="(\w+)"\} 1$/gm)].map(([, state]) => state)
      const outages = /^trunkline_server_outages_total\{server="a"\} (\d+)$/m.exec(text)?.[1]
      return [
        serverStatuses(running)[0]?.state,
        ...states,
        ...statsOf(running, 1_000, []).servers.map(({ state }) => state),
        outages,
      ]
    }
    expect(shown()).toEqual(['starting', 'starting', 'starting', '0'])
    await using a = await modernHttp.connect(stage.gateway, { ...able, token: () => tokenOf('A') })
    await using b = await modernHttp.connect(stage.gateway, { ...able, token: () => tokenOf('B') })
    const asked = await a.call('tools/call', SIGN_IN)
    await b.call('tools/call', SIGN_IN)
    expect(shown()).toEqual(['starting', 'starting', 'starting', '0'])
    const browser = new Browser()
    const page = await browser.open(linkOf(asked))
    const reply = await browser.step(page.url, proofOf(page.text, 'A'))
    await browser.open(reply.headers.get('location') ?? '')
    await a.call('tools/call', { ...SIGN_IN, ...back(asked) })
    expect(shown()).toEqual(['healthy', 'healthy', 'healthy', '0'])
  })

  test('6.4 the only caller of a gateway without auth counts as missing its sign-in once its connection was tried', async () => {
    await using stage = await scene()
    const { running } = stage.gateway
    const shown = () => {
      const { state, needsSignIn } = serverStatuses(running)[0] ?? {}
      return [
        state,
        needsSignIn,
        /^trunkline_server_state\{server="a",state="(\w+)"\} 1$/m.exec(metricsText(running, false))?.[1],
      ]
    }
    expect(shown()).toEqual(['starting', false, 'starting'])
    await using host = await modernHttp.connect(stage.gateway, able)
    await host.call('tools/call', SIGN_IN)
    expect(shown()).toEqual(['failed', true, 'failed'])
  })

  test('6.4 ps counts them, and the log tells of each once, for information; nothing of it is an error', async () => {
    await using stage = await scene({ host: { auth: TWO_TOKENS } })
    const { log, running } = stage.gateway
    const lines = () =>
      formatLines(
        serverLines(
          serverStatuses(running),
          (text) => text,
          (...words) => operatorCommand([], ...words),
        ),
      )
        .trimEnd()
        .split('\n')
    expect(lines()).toEqual([expect.stringMatching(/○ a {2}starting .* each caller signs in through its host$/)])
    await using a = await modernHttp.connect(stage.gateway, { ...able, token: () => tokenOf('A') })
    await a.call('tools/list')
    await a.call('tools/call', SIGN_IN)
    running.fleet.get('a')?.retryNow()
    await a.call('tools/call', SIGN_IN)
    expect(lines()).toEqual([expect.stringMatching(/○ a {2}starting .* 1 caller, 1 not signed in$/)])
    await using b = await modernHttp.connect(stage.gateway, { ...able, token: () => tokenOf('B') })
    await b.call('tools/list')
    const told = log.entries.filter(({ text }) => text.includes('needs sign-in'))
    expect(told.map(({ level, facts }) => [level, facts['server']])).toEqual([
      ['info', 'a'],
      ['info', 'a'],
    ])
    expect(new Set(told.map(({ facts }) => facts['principal'])).size).toBe(2)
    expect(log.entries.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('B248 T-08 the link of one leads the other nowhere', async () => {
    await using stage = await scene({ host: { auth: TWO_TOKENS } })
    await using a = await modernHttp.connect(stage.gateway, { ...able, token: () => tokenOf('A') })
    const link = linkOf(await a.call('tools/call', SIGN_IN))
    for (const proof of ['B', 'Z']) {
      const browser = new Browser()
      const page = await browser.open(link)
      expect((await browser.step(page.url, proofOf(page.text, proof))).status).toBe(403)
    }
    expect(stage.issuer.authorizations).toEqual([])
  })
})

describe('T-08 the page of a sign-in', () => {
  /** A browser that has consented and been sent away, and where it would come back to. */
  const departed = async ({ gateway }: Scene) => {
    await using host = await modernHttp.connect(gateway, able)
    const link = linkOf(await host.call('tools/call', SIGN_IN))
    const browser = new Browser()
    const page = await browser.open(link)
    const left = await browser.step(page.url, proofOf(page.text, 'A'))
    const returning = await browser.step(left.headers.get('location') ?? '')
    return { link, browser, page, callback: returning.headers.get('location') ?? '' }
  }

  test('takes an answer in the browser that consented, and once', async () => {
    await using stage = await scene()
    const { browser, callback } = await departed(stage)
    expect((await browser.open(callback)).status).toBe(200)
    expect((await browser.open(callback)).status).toBe(400)
    expect(stage.issuer.grants).toEqual(['authorization_code'])
  })

  test('refuses an answer in another browser, and the code is not used', async () => {
    await using stage = await scene()
    const { callback } = await departed(stage)
    expect((await new Browser().open(callback)).status).toBe(400)
    expect(stage.issuer.exchanges).toEqual([])
  })

  test.each([
    ['without the mark of the page', () => new URLSearchParams()],
    ['with the mark of another browser', (text: string) => proofOf(text, 'A')],
  ])('refuses consent %s', async (_name, form) => {
    await using stage = await scene()
    await using host = await modernHttp.connect(stage.gateway, able)
    const link = linkOf(await host.call('tools/call', SIGN_IN))
    const { text } = await new Browser().open(link)
    const other = new Browser()
    await other.open(link)
    expect((await other.step(link, form(text))).status).toBe(403)
    expect(stage.issuer.authorizations).toEqual([])
  })

  test('can be framed by nobody, and its cookie is for no script', async () => {
    await using stage = await scene()
    const { page } = await departed(stage)
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(page.headers.get('x-frame-options')).toBe('DENY')
    expect(page.headers.get('set-cookie')).toMatch(/; HttpOnly; SameSite=Lax$/)
  })

  test('has a cookie that only this host over https can have set, where people come by https', async () => {
    await using stage = await scene({ host: { publicUrl: 'https://mcp.example.com' } })
    await using host = await modernHttp.connect(stage.gateway, able)
    const link = new URL(linkOf(await host.call('tools/call', SIGN_IN)))
    expect(link.origin).toBe('https://mcp.example.com')
    const page = await new Browser().open(new URL(link.pathname, stage.gateway.url))
    expect(page.headers.get('set-cookie')).toMatch(
      /^__Host-trunkline-browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    )
  })

  test('keeps the path of listen.http.public_url in its link, its form and where people come back', async () => {
    await using stage = await scene({ host: { publicUrl: 'https://example.com/gateway' } })
    await using host = await modernHttp.connect(stage.gateway, able)
    const link = new URL(linkOf(await host.call('tools/call', SIGN_IN)))
    expect(link.href).toMatch(/^https:\/\/example\.com\/gateway\/connect\/[\w-]+$/)
    for (const path of [link.pathname, link.pathname.replace('/gateway', '')]) {
      const page = await new Browser().open(new URL(path, stage.gateway.url))
      const action = /<form method="post" action="([^"]*)"/.exec(page.text)?.[1] ?? ''
      expect(new URL(action, link).href).toBe(link.href)
    }
    const document = await new Browser().open(new URL('/gateway/connect/client.json', stage.gateway.url))
    expect(JSON.parse(document.text)).toMatchObject({ redirect_uris: ['https://example.com/gateway/connect/callback'] })
  })

  test('B244 refuses a changed issuer before the code leaves', async () => {
    await using stage = await scene()
    const { browser, callback } = await departed(stage)
    const changed = new URL(callback)
    changed.searchParams.set('iss', 'https://evil.example.com')
    expect((await browser.open(changed)).status).toBe(502)
    expect(stage.issuer.exchanges).toEqual([])
  })

  test('B240 B243 B246 asks with PKCE, a state, the resource and one redirect, as a native client', async () => {
    await using stage = await scene()
    await departed(stage)
    const [params] = stage.issuer.authorizations
    const [registration] = stage.issuer.registrations
    const redirect = new URL('/connect/callback', stage.gateway.url).href
    expect(registration).toMatchObject({ redirect_uris: [redirect], application_type: 'native' })
    const { url } = stage.server.address as { url: URL }
    expect(Object.fromEntries(params!)).toMatchObject({
      resource: url.href,
      redirect_uri: redirect,
      code_challenge_method: 'S256',
    })
    expect(params!.get('state')).toMatch(/^[\w-]{43}$/)
  })

  test('B243 goes nowhere where PKCE is not offered', async () => {
    await using stage = await scene({ issuer: { metadata: { code_challenge_methods_supported: undefined } } })
    await using host = await modernHttp.connect(stage.gateway, able)
    const page = await new Browser().signIn(linkOf(await host.call('tools/call', SIGN_IN)))
    expect(page.status).toBe(502)
    expect(stage.issuer.authorizations).toEqual([])
  })
})

test('T-14 tokens lie sealed in files of their owner, survive a restart, and are in no log line', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
  await using issuer = await FakeIssuer.start()
  await using server = await FakeDownstream.start(fake.offering('echo'))
  protect(server, issuer)
  const setup = { servers: {}, fakes: new Map([['a', server]]), options: { a: { credential: PER_USER } }, stateDir }
  const first = await startGateway(setup)
  const host = await modernHttp.connect(first, able)
  const asked = await host.call('tools/call', SIGN_IN)
  await new Browser().signIn(linkOf(asked))
  await host.call('tools/call', { ...SIGN_IN, ...back(asked) })
  await host[Symbol.asyncDispose]()
  await first[Symbol.asyncDispose]()
  const secret = /access-[\w-]+|[\da-f]{8}-[\da-f]{4}-4/
  const folder = join(stateDir, 'credentials')
  const files = readdirSync(folder).map((name) => join(folder, name))
  expect(files).toHaveLength(2)
  for (const file of files) {
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toMatch(secret)
  }
  for (const name of readdirSync(stateDir).filter((file) => file.endsWith('.json')))
    expect(readFileSync(join(stateDir, name), 'utf8')).not.toContain('"echo"')
  expect(JSON.stringify(first.log.entries)).not.toMatch(/access-/)
  await using second = await startGateway(setup)
  await using again = await modernHttp.connect(second, able)
  expect(names(await again.call('tools/list'))).toEqual(['a__echo'])
  expect(issuer.grants).toEqual(['authorization_code'])
  rmSync(stateDir, { recursive: true })
})

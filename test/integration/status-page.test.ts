/** The page at the MCP address for people: what it says to whom, in a real browser, without scripts, in every size and both colours. */
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { AuthOptions, ResourceServerOptions } from '../../src/auth/inbound/verify/inbound-options.ts'
import { oauthOf, PER_USER, staticToken, tokenOf } from '../support/credentials.ts'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import { FakeIssuer, protect } from '../support/fake-issuer.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'
import { axeViolations, describeWithBrowser, openWindow } from '../support/real-browser.ts'
import { toolsetOf } from '../support/toolsets.ts'

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const AUTH = {
  tokens: [staticToken('A'), staticToken('B', { toolsets: ['few'] })],
  oauth: undefined,
  map: [],
}
/** A server of each state: ready, hostile in its name, to be signed in to. */
const scene = async (setup: Partial<GatewaySetup> = {}): Promise<TestGateway> => {
  const issuer = await FakeIssuer.start()
  const calendar = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['x'] }))
  protect(calendar, issuer)
  const gateway = await startGateway({
    servers: { files: fake.offering('read', 'write'), odd: fake.offering('x') },
    fakes: new Map([['calendar', calendar]]),
    options: {
      files: { displayName: 'Files' },
      odd: { displayName: '<img src=x onerror=alert(1)>\u202e \u001b[31m' + 'long'.repeat(20) },
      calendar: { displayName: 'Calendar', credential: PER_USER },
    },
    ...setup,
  })
  return {
    ...gateway,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]()
      await calendar[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}
const at = (gateway: TestGateway, path: string): URL => new URL(path, gateway.url)
const shown = (gateway: TestGateway, token: string): Promise<Response> =>
  fetch(at(gateway, '/'), { method: 'POST', body: new URLSearchParams({ token }), headers: { origin: gateway.url.origin } })

describe('over plain requests', () => {
  test.each(['/', '/mcp'])('%s is a page for a browser, with a policy that lets nothing in', async (path) => {
    await using gateway = await startGateway({ servers: { a: fake.offering('x') } })
    const response = await fetch(at(gateway, path), { headers: HTML })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/]+=*'; img-src data:; base-uri 'none'; frame-ancestors 'none'; form-action 'self'$/,
    )
    expect(response.headers.get('cache-control')).toBe('no-store')
    const text = await response.text()
    expect(text).toContain(`<code>${gateway.url.href}</code>`)
    expect(text).not.toMatch(/<script|\son\w+=|style=|javascript:/i)
    for (const label of ['Claude Code', 'VS Code', 'Cursor', 'Codex', 'Gemini CLI', 'Goose', 'Zed']) expect(text).toContain(label)
  })

  test('hosts get what they got before', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('x') } })
    const status = async (path: string, headers: Record<string, string>, method = 'GET'): Promise<number> => {
      const response = await fetch(at(gateway, path), { headers, method })
      await response.body?.cancel()
      return response.status
    }
    expect(await status('/', { accept: '*/*' })).toBe(404)
    expect(await status('/mcp', { accept: 'text/event-stream' })).toBe(400)
    expect(await status('/mcp', { accept: 'text/html, text/event-stream' })).toBe(400)
    expect(await status('/mcp', { accept: 'application/json' })).toBe(406)
    expect(await status('/mcp/none', HTML)).toBe(404)
    expect(await status('/', { 'content-type': 'application/json' }, 'POST')).toBe(404)
  })

  test('names nothing without a credential, and for a token what its owner sees', async () => {
    await using gateway = await scene({
      host: { auth: AUTH },
      gateway: { toolsets: [toolsetOf({ servers: ['files'] }, { name: 'few' })] },
    })
    const anonymous = await (await fetch(at(gateway, '/'), { headers: HTML })).text()
    for (const name of ['Files', 'Calendar', 'files', '/connect/', 'Signed in']) expect(anonymous).not.toContain(name)
    expect(anonymous).toContain('type="password"')
    const all = await (await shown(gateway, tokenOf('A'))).text()
    expect(all).toMatch(
      /Signed in as token:A\.[^]*Calendar[^]*needs sign-in[^]*http:\/\/127\.0\.0\.1:\d+\/connect\/[\w-]{22}"[^]*Files[^]*2 tools/,
    )
    const few = await (await shown(gateway, tokenOf('B'))).text()
    expect(few).toContain('Files')
    expect(few).not.toContain('Calendar')
    for (const text of [all, few]) expect(text).not.toContain('tlk_')
    for (const token of ['', 'tlk_wrong', tokenOf('C')]) {
      const refused = await shown(gateway, token)
      expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('This token is not valid here.')])
    }
  })

  test('shows names and labels as text, whatever they hold', async () => {
    await using gateway = await scene()
    const text = await (await fetch(at(gateway, '/'), { headers: HTML })).text()
    expect(text).toContain('&#60;img src=x onerror=alert(1)&#62;')
    expect(text).not.toMatch(/<img|\u202e|\u001b/)
  })

  test('T-02 a page of another origin can neither open nor post it', async () => {
    await using gateway = await scene()
    const foreign = { ...HTML, origin: 'https://evil.example.com' }
    expect((await fetch(at(gateway, '/'), { headers: foreign })).status).toBe(403)
    const post = await fetch(at(gateway, '/'), { method: 'POST', body: new URLSearchParams({ token: 'x' }), headers: foreign })
    expect(post.status).toBe(403)
  })

  test('names the client ids of auth.oauth.clients as text, and asks for a token by hand only where there is no other way', async () => {
    const oauth = (facts: Partial<ResourceServerOptions>): AuthOptions =>
      oauthOf({ issuer: 'https://idp.test' }, 'https://gw.test/mcp', facts)
    const hostClients = [
      { id: 'mcp-host', name: 'Cursor & <b>others</b>' },
      { id: 'plain', name: undefined },
    ]
    const signing = oauth({ hostClients })
    await using gateway = await startGateway({ servers: {}, host: { auth: signing } })
    const page = async (): Promise<string> => (await fetch(at(gateway, '/'), { headers: HTML })).text()
    const text = await page()
    expect(text).toContain('<li><code>mcp-host</code><span>Cursor &#38; &#60;b&#62;others&#60;/b&#62;</span></li>')
    expect(text).toContain('<li><code>plain</code><span>any host</span></li>')
    expect(text).toContain('A host opens a browser')
    expect(text).not.toContain('TRUNKLINE_TOKEN')
    const { running } = gateway
    const { configuration } = running
    const apply = (auth: AuthOptions) => running.apply({ ...configuration, host: { ...configuration.host, auth } }, new Set())
    await apply({ ...signing, tokens: [staticToken('A')] })
    expect(await page()).toContain('One that cannot brings an access token')
    expect(await page()).not.toContain('TRUNKLINE_TOKEN')
    await apply(AUTH)
    expect(await page()).toContain('TRUNKLINE_TOKEN')
    expect(await page()).not.toContain('Client ids')
  })

  test('it names the address as it was typed', async () => {
    await using gateway = await scene()
    const { port } = new URL(gateway.url)
    const text = await (await fetch(`http://localhost:${port}/`, { headers: HTML })).text()
    expect(text).toContain(`<code>http://localhost:${port}/mcp</code>`)
  })

  test('behind a proxy it names the address that hosts use, and posts to the path the proxy has before ours', async () => {
    await using gateway = await scene({ host: { auth: AUTH, publicUrl: 'https://mcp.example.com/gateway' } })
    const text = await (await fetch(at(gateway, '/gateway/'), { headers: HTML })).text()
    expect(text).toContain('<code>https://mcp.example.com/gateway/mcp</code>')
    expect(text).toContain('action="/gateway/"')
  })
})

const SIZES = [
  { width: 320, height: 568 },
  { width: 768, height: 1024 },
  { width: 1280, height: 800 },
  { width: 3840, height: 2160 },
] as const
/** Screenshots are kept here where `SCREENSHOTS` names a folder, for a person to look at. */
const FOLDER = process.env['SCREENSHOTS']

await describeWithBrowser('in a browser', (browser) => {
  const problemsOf = (page: Page): string[] => {
    const problems: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
    })
    page.on('pageerror', (error) => problems.push(error.message))
    return problems
  }

  describe.each(SIZES)('$width px wide', (size) => {
    test.each(['light', 'dark'] as const)(
      '%s: nothing is cut off, axe finds nothing, and the policy is kept',
      async (colorScheme) => {
        await using gateway = await scene()
        const { context, page } = await openWindow(browser, { ...size, colorScheme })
        const problems = problemsOf(page)
        await page.goto(at(gateway, '/').href)
        for (const opened of [false, true]) {
          if (opened) await page.getByText('Claude Code', { exact: true }).click()
          expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0)
          expect(await axeViolations(page)).toEqual([])
        }
        if (FOLDER !== undefined) {
          mkdirSync(FOLDER, { recursive: true })
          await page.screenshot({ path: `${FOLDER}/status-${size.width}-${colorScheme}.png`, fullPage: size.width < 1_000 })
        }
        expect(problems).toEqual([])
        await context.close()
      },
    )
  })

  test('without scripts, by keyboard alone: a person shows a token, opens a host and goes to sign in', async () => {
    await using gateway = await scene({ host: { auth: AUTH } })
    const { context, page } = await openWindow(browser, { javaScriptEnabled: false })
    await page.goto(at(gateway, '/mcp').href)
    await page.getByLabel('Access token').focus()
    await page.keyboard.type('wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Access token').focus()
    await page.keyboard.type(tokenOf('A'))
    await page.keyboard.press('Enter')
    await page.getByText('Signed in as token:A.').waitFor()
    await page.getByText('Cursor', { exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.locator('details[open] pre').waitFor()
    await page.getByRole('link', { name: 'Sign in to Calendar' }).press('Enter')
    await page.getByRole('heading', { name: 'Sign in to Calendar' }).waitFor()
    await context.close()
  })

  test('the pages of a sign-in are as clean', async () => {
    await using gateway = await scene()
    for (const colorScheme of ['light', 'dark'] as const) {
      const { context, page } = await openWindow(browser, { colorScheme, width: 320 })
      const problems = problemsOf(page)
      await page.goto(at(gateway, '/').href)
      await page.getByRole('link', { name: 'Sign in to Calendar' }).click()
      await page.getByRole('heading', { name: 'Sign in to Calendar' }).waitFor()
      expect(await axeViolations(page)).toEqual([])
      expect(problems).toEqual([])
      if (FOLDER !== undefined) await page.screenshot({ path: `${FOLDER}/sign-in-${colorScheme}.png` })
      await context.close()
    }
  })
})

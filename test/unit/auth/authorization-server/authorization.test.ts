/** Who may send a person where, and whose answer is believed (B244, T-11). */
import { describe, expect, test } from 'vitest'
import { authorizationCode, beginAuthorization, browserUrl } from '../../../../src/auth/authorization-server/authorization.ts'
import type { PendingAuthorization } from '../../../../src/auth/authorization-server/authorization.ts'
import type { Provider } from '../../../../src/auth/authorization-server/discovery.ts'
import { openerFor } from '../../../../src/commands/terminal/open-url.ts'

const provider: Provider = {
  issuer: 'https://as.example.com',
  resource: 'https://mcp.example.com/mcp',
  authorizationEndpoint: 'https://as.example.com/authorize?tenant=1',
  tokenEndpoint: 'https://as.example.com/token',
  registrationEndpoint: undefined,
  resourceScopes: undefined,
  scopes: undefined,
  tokenAuth: undefined,
  hasPkce: true,
  tellsIssuer: false,
  takesDocuments: false,
}
const registered = { client: { id: 'c', secret: undefined, privateKey: undefined, algorithm: '' }, auth: undefined }
const terms = { redirectUri: 'https://gateway.example.com/connect/callback', scope: 'read', reach: 'public' } as const
const pending = (tellsIssuer: boolean): PendingAuthorization =>
  beginAuthorization({ ...provider, tellsIssuer }, registered, terms).pending

describe('B244 an answer', () => {
  test.each([
    ['is taken where iss is advertised and right', true, 'https://as.example.com'],
    ['is taken where iss is not advertised and right', false, 'https://as.example.com'],
    ['is taken where iss is not advertised and absent', false, undefined],
  ])('%s', (_name, tellsIssuer, iss) => {
    const answer = new URLSearchParams({ code: 'x', ...(iss !== undefined && { iss }) })
    expect(authorizationCode(pending(tellsIssuer), answer)).toBe('x')
  })

  test.each([
    ['iss is advertised and absent', true, []],
    ['iss is another', true, ['https://evil.example.com']],
    ['iss is another, though not advertised', false, ['https://evil.example.com']],
    ['iss differs by a slash', true, ['https://as.example.com/']],
    ['iss differs by case', true, ['https://AS.example.com']],
    ['iss comes twice', true, ['https://as.example.com', 'https://as.example.com']],
  ])('is refused where %s, and its error text is not looked at', (_name, tellsIssuer, issuers) => {
    const answer = new URLSearchParams([
      ['error', 'ha-ha'],
      ['code', 'x'],
      ...issuers.map((iss): [string, string] => ['iss', iss]),
    ])
    expect(() => authorizationCode(pending(tellsIssuer), answer)).toThrow('not from the authorization server that was asked')
  })
})

test('B240 B243 what is asked for stands in the URL, beside what was there', () => {
  const { url, pending: kept } = beginAuthorization(provider, registered, terms)
  const params = Object.fromEntries(new URL(url).searchParams)
  expect(params).toMatchObject({ tenant: '1', resource: provider.resource, code_challenge_method: 'S256', state: kept.state })
  expect(params['code_challenge']).not.toBe(kept.verifier)
  expect(beginAuthorization(provider, registered, terms).pending.state).not.toBe(kept.state)
})

const INJECTIONS = [
  '$(id)',
  '`id`',
  '&calc',
  '|id',
  ';id',
  "'id'",
  '"id"',
  '%26id',
  '\nid',
  '<id>',
  '$IFS',
  '%COMSPEC%',
  '--id',
  '^&id',
  '\\\\x\\y',
]
const PLACES = [
  (text: string) => `https://as.example.com/${text}`,
  (text: string) => `https://as.example.com/?a=${text}`,
  (text: string) => `https://as.example.com/#${text}`,
]
const SCHEMES = [
  'javascript:alert(1)',
  'file:///etc/passwd',
  'data:text/html,x',
  'vbscript:x',
  'ms-msdt:/id',
  'calc.exe',
  '--help',
  '-a Calculator',
  '\\\\host\\share',
  'smb://host/share',
  'ssh://-oProxyCommand=id',
  'about:blank',
  'chrome://settings',
  'view-source:https://x',
  '',
]
const HOSTILE = [...INJECTIONS.flatMap((text) => PLACES.map((place) => place(text))), ...SCHEMES]

describe('T-11 sixty hostile authorization URLs', () => {
  test('are as many as that', () => {
    expect(HOSTILE).toHaveLength(60)
  })

  test.each(HOSTILE)('%j is refused, or is one argument of one program', (text) => {
    let url: string | undefined
    try {
      url = browserUrl(text, 'public').href
    } catch {
      url = undefined
    }
    for (const platform of ['linux', 'darwin', 'win32'] as const) {
      const opener = openerFor(url ?? text, platform)
      if (url === undefined) expect(opener).toBeUndefined()
      else expect(opener).toEqual([expect.stringMatching(/^(xdg-open|\/usr\/bin\/open|explorer\.exe)$/), url])
    }
    expect(url ?? 'https://').toMatch(/^https:\/\/[^\s"<>]*$/)
  })
})

import { expect, test } from 'vitest'
import { ProtectedResource } from '../../../src/auth/inbound/protected-resource.ts'
import { oauthOf } from '../../support/credentials.ts'

const of = (
  audience: string,
  path = '/mcp',
  scopes: readonly string[] = ['mcp:connect', 'mcp:a', 'offline'],
): ProtectedResource => new ProtectedResource(oauthOf({ issuer: 'https://idp.test' }, audience, { scopes }).oauth!, path)
const WELL_KNOWN = '/.well-known/oauth-protected-resource'
const resourceAt = (resource: ProtectedResource, path: string): unknown =>
  (JSON.parse(resource.documentAt(path) ?? '{}') as { resource?: unknown }).resource

test.each([
  ['', 'https://gw.test/mcp'],
  ['/mcp', 'https://gw.test/mcp'],
  ['/mcp/review', 'https://gw.test/mcp'],
  ['/sse', 'https://gw.test/sse'],
  ['/messages', 'https://gw.test/sse'],
  ['/servers/a/sse', 'https://gw.test/servers/a/sse'],
  ['/servers/a/messages', 'https://gw.test/servers/a/sse'],
  ['/servers/a/mcp', 'https://gw.test/servers/a/mcp'],
  ['/servers/is-there-one/mcp', 'https://gw.test/servers/is-there-one/mcp'],
  ['/servers/a', undefined],
  ['/servers/A/mcp', undefined],
  ['/other', undefined],
  ['/mcpx', undefined],
  ['/ssex', undefined],
  ['/messagesx', undefined],
  ['x', undefined],
])('B264 the document at …/oauth-protected-resource%s is that of %s', (path, resource) => {
  expect(resourceAt(of('https://gw.test/mcp'), WELL_KNOWN + path)).toBe(resource)
})

test('B232 it names the authorization server, how tokens come, and the scopes to begin with', () => {
  expect(JSON.parse(of('https://gw.test/mcp').documentAt(WELL_KNOWN) ?? '')).toEqual({
    resource: 'https://gw.test/mcp',
    authorization_servers: ['https://idp.test'],
    scopes_supported: ['mcp:connect', 'mcp:a', 'offline'],
    bearer_methods_supported: ['header'],
    resource_name: 'Trunkline',
  })
  expect(of('https://gw.test/mcp', '/mcp', []).documentAt(WELL_KNOWN)).not.toContain('scopes_supported')
})

test('request_scopes are named beside the scopes in the document and in every challenge, once each', () => {
  const [scopes, requestScopes] = [
    ['mcp:connect', 'email'],
    ['openid', 'email'],
  ]
  const { oauth } = oauthOf({ issuer: 'https://idp.test' }, 'https://gw.test/mcp', { scopes, requestScopes })
  const resource = new ProtectedResource(oauth!, '/mcp')
  expect(JSON.parse(resource.documentAt(WELL_KNOWN) ?? '')).toMatchObject({
    scopes_supported: ['openid', 'email', 'mcp:connect'],
  })
  expect(resource.challenge('/mcp', { error: undefined, scopes: resource.advertised('/mcp') })).toContain(
    ' scope="openid email mcp:connect", ',
  )
  // A host that is asked for more asks for these scopes alone.
  expect(resource.challenge('/mcp', { error: 'insufficient_scope', scopes: ['mcp:a'] })).toContain(
    ' scope="openid email mcp:a", ',
  )
})

test('behind a proxy that serves us below a path, both spellings find the document', () => {
  const resource = of('https://gw.test/tools/mcp')
  for (const path of ['/tools/mcp', '/mcp', '']) expect(resourceAt(resource, WELL_KNOWN + path)).toBe('https://gw.test/tools/mcp')
  expect(resourceAt(resource, `${WELL_KNOWN}/tools/sse`)).toBe('https://gw.test/tools/sse')
  expect(resource.uriOf('/servers/a/mcp')).toBe('https://gw.test/tools/servers/a/mcp')
  expect([resource.base, of('https://gw.test/mcp').base]).toEqual(['https://gw.test/tools', 'https://gw.test'])
  expect(resource.challenge('/sse', { error: undefined, scopes: [] })).toBe(
    'Bearer resource_metadata="https://gw.test/.well-known/oauth-protected-resource/tools/sse"',
  )
})

test('B233 B238 a challenge says what is wrong, which scopes it takes, and where the document is', () => {
  const resource = of('https://gw.test/mcp')
  const scopes = ['mcp:connect', 'mcp:a']
  expect(resource.challenge('/mcp/review', { error: 'insufficient_scope', scopes })).toBe(
    'Bearer error="insufficient_scope", scope="mcp:connect mcp:a", resource_metadata="https://gw.test/.well-known/oauth-protected-resource/mcp"',
  )
  expect(resource.challenge('/nothing', { error: undefined, scopes })).toContain('/oauth-protected-resource/mcp"')
  expect(resource.challenge('/servers/a/mcp', { error: undefined, scopes })).toContain('/oauth-protected-resource/servers/a/mcp"')
})

test.each([
  ['/mcp', 'https://gw.test/mcp'],
  ['/mcp/review', 'https://gw.test/mcp/review'],
  ['/sse', 'https://gw.test/sse'],
  ['/messages', 'https://gw.test/sse'],
  ['/servers/a/sse', 'https://gw.test/servers/a/sse'],
  ['/servers/a/messages', 'https://gw.test/servers/a/sse'],
  ['/messages/review', 'https://gw.test/sse/review'],
  ['/messagesx', 'https://gw.test/messagesx'],
])('B234 at %s a token must be for %s or above', (path, uri) => {
  expect(of('https://gw.test/mcp').uriOf(path)).toBe(uri)
})

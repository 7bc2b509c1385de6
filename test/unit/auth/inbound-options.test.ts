import { expect, test } from 'vitest'
import {
  advertisedScopes,
  authMode,
  entranceScopes,
  serverOfScope,
  takesTokenByHand,
} from '../../../src/auth/inbound/verify/inbound-options.ts'
import type { Advertised, AuthOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { oauthOf, TWO_TOKENS } from '../../support/credentials.ts'

const OAUTH = oauthOf({ issuer: 'https://idp.test' }, 'https://gw.test/mcp')

test.each<[mode: string, auth: AuthOptions | undefined, byHand: boolean]>([
  ['none', undefined, false],
  ['tokens', TWO_TOKENS, true],
  ['oauth', OAUTH, false],
  ['any', { ...OAUTH, tokens: TWO_TOKENS.tokens }, false],
])('with auth.mode %s a host gets a token by hand only where it cannot sign in', (mode, auth, byHand) => {
  expect([authMode(auth), takesTokenByHand(auth)]).toEqual([mode, byHand])
})

test.each([
  ['mcp:connect', undefined],
  ['mcp:a', 'a'],
  ['mcp:a:write', 'a'],
  ['mcp:a:read', undefined],
  ['mcp:', undefined],
  ['openid', undefined],
])('the scope %s is of the server %s', (scope, server) => {
  expect(serverOfScope(scope)).toBe(server)
})

const scopes = ['mcp:connect', 'openid', 'mcp:a', 'mcp:a:write', 'mcp:b', 'mcp:b:write']

test('scopes of servers are not needed at the entrance', () => {
  expect(entranceScopes({ ...OAUTH.oauth!, scopes })).toEqual(['mcp:connect', 'openid'])
})

test.each<[Advertised, string | undefined, readonly string[]]>([
  ['all', undefined, scopes],
  ['reads', undefined, ['mcp:connect', 'openid', 'mcp:a', 'mcp:b']],
  ['entrance', undefined, ['mcp:connect', 'openid']],
  ['all', 'a', ['mcp:connect', 'openid', 'mcp:a', 'mcp:a:write']],
  ['reads', 'a', ['mcp:connect', 'openid', 'mcp:a']],
  ['entrance', 'a', ['mcp:connect', 'openid', 'mcp:a']],
])('auth.oauth.advertise: %s, at the endpoint of server %s: %j', (advertise, server, expected) => {
  expect(advertisedScopes({ ...OAUTH.oauth!, scopes, advertise }, server)).toEqual(expected)
})

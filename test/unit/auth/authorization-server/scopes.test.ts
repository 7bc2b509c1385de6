/** Which scopes a sign-in asks for: the configuration is the last word (BRIDGING 6.2.6; B246, B247). */
import { expect, test } from 'vitest'
import { chooseScopes } from '../../../../src/auth/authorization-server/scopes.ts'
import type { ScopeSources } from '../../../../src/auth/authorization-server/scopes.ts'

const SERVER: ScopeSources = {
  configured: undefined,
  challenged: 'repo',
  ofResource: ['repo', 'admin'],
  ofIssuer: ['openid', 'offline_access'],
  before: 'user',
}

test.each<[name: string, sources: Partial<ScopeSources>, asked: string | undefined]>([
  ['what the challenge wants, with what was asked before', {}, 'user repo offline_access'],
  ['without a challenge, what the resource lists', { challenged: undefined }, 'user repo admin offline_access'],
  [
    'without either, nothing of the server',
    { challenged: undefined, ofResource: undefined, before: undefined },
    'offline_access',
  ],
  ['what is configured, whatever the server wants or asked before', { configured: ['read'] }, 'read offline_access'],
  ['an empty list: nothing but to stay signed in', { configured: [] }, 'offline_access'],
  ['an empty list, and not to stay: no scope at all', { configured: [], offline: false }, undefined],
  ['not to stay signed in', { offline: false }, 'user repo'],
  ['not to stay, though the server wants it', { challenged: 'repo offline_access', offline: false }, 'user repo'],
  ['nothing that the authorization server does not list', { ofIssuer: ['openid'] }, 'user repo'],
  [
    'what is configured, though the authorization server does not list it',
    { configured: ['offline_access'], ofIssuer: [] },
    'offline_access',
  ],
  [
    'what is configured by name, whatever is said of staying',
    { configured: ['read', 'offline_access'], offline: false },
    'read offline_access',
  ],
])('B247 asked for: %s', (_name, sources, asked) => {
  expect(chooseScopes({ ...SERVER, ...sources })).toBe(asked)
})

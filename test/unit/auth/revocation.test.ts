/** Whose sessions end when a reload changes the credentials (BRIDGING 5.1). */
import { expect, test } from 'vitest'
import type { AuthOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { revokedBy } from '../../../src/auth/inbound/revocation.ts'
import { principalOf } from '../../../src/auth/inbound/static-tokens.ts'
import { SHARED_PRINCIPAL } from '../../../src/rpc/call.ts'
import { oauthOf, TWO_TOKENS } from '../../support/credentials.ts'

const [first, second] = TWO_TOKENS.tokens as [AuthOptions['tokens'][0], AuthOptions['tokens'][0]]
const [A, B] = [principalOf(first.id), principalOf(second.id)]
const PERSON = 'alice of an issuer'
const LOCAL = SHARED_PRINCIPAL
const tokens = (...some: AuthOptions['tokens']): AuthOptions => ({ ...TWO_TOKENS, tokens: some })
const withIssuer = (issuer: string): AuthOptions => ({ ...TWO_TOKENS, oauth: oauthOf({ issuer }, 'https://gw.test/mcp').oauth })

test.each<[string, AuthOptions | undefined, AuthOptions | undefined, readonly string[]]>([
  ['nothing changed', tokens(first, second), tokens(first, second), []],
  ['nothing is needed, as before', undefined, undefined, []],
  ['credentials are needed now', undefined, tokens(first), [LOCAL]],
  ['none are needed any more', tokens(first, second), undefined, [A, B, PERSON, LOCAL]],
  ['a token was removed', tokens(first, second), tokens(second), [A]],
  ['a token was added', tokens(first), tokens(first, second), []],
  ['a token may do less', tokens(first, second), tokens({ ...first, toolsets: ['less'] }, second), [A]],
  ['another issuer', withIssuer('https://one.test'), withIssuer('https://two.test'), [PERSON, LOCAL]],
  [
    'an issuer as before, and a token less',
    withIssuer('https://one.test'),
    { ...withIssuer('https://one.test'), tokens: [second] },
    [A],
  ],
])('%s', (_, before, after, ended) => {
  const isRevoked = revokedBy(before, after)
  expect([A, B, PERSON, LOCAL].filter(isRevoked)).toEqual(ended)
})

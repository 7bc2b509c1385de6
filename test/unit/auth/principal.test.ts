/** Which principal a token stands for (T-39). The machine tokens are written as the named issuers issue them. */
import { describe, expect, test } from 'vitest'
import { principalOfClaims } from '../../../src/auth/inbound/verify/principal.ts'
import type { ClaimSource } from '../../../src/auth/inbound/verify/principal.ts'
import { sentenceOf } from '../../../src/auth/token-refusal.ts'

const ISSUER = 'https://idp.test'
const nameOf = (
  claims: object,
  { subject = 'sub', source = 'jwt', issuer = ISSUER }: { subject?: string; source?: ClaimSource; issuer?: string } = {},
) => {
  const principal = principalOfClaims(claims as Record<string, unknown>, issuer, subject, source)
  return 'name' in principal ? principal.name : undefined
}
const reasonOf = (claims: object, source: ClaimSource = 'jwt') => {
  const principal = principalOfClaims(claims as Record<string, unknown>, ISSUER, 'sub', source)
  return 'refused' in principal ? sentenceOf(principal.refused) : undefined
}

/** Client credentials at each issuer, in its default setup. */
const MACHINES: Readonly<Record<string, object>> = {
  Keycloak: {
    jti: 'trrtcc:0b7d2f0e',
    sub: '0c2fb4a0-6f8f-4e0f-9a3a-5a4e3d1b7a11',
    typ: 'Bearer',
    azp: 'ci',
    acr: '1',
    'allowed-origins': ['/*'],
    scope: 'email profile',
    clientHost: '10.0.0.7',
    clientAddress: '10.0.0.7',
    client_id: 'ci',
    email_verified: false,
    preferred_username: 'service-account-ci',
  },
  'Keycloak, lightweight and without the scope basic': {
    jti: 'trrtcc:0b7d2f0e',
    typ: 'Bearer',
    azp: 'ci',
    scope: '',
    clientHost: '10.0.0.7',
    clientAddress: '10.0.0.7',
    client_id: 'ci',
  },
  'Entra ID, v1': {
    aio: 'E2NgYFi3',
    appid: '6e74172b-be56-4843-9ff4-e66a39bb12e3',
    appidacr: '1',
    idp: 'https://sts.windows.net/72f988bf/',
    oid: '3f1b6b2e-0000-4000-8000-000000000001',
    rh: '0.AAAA',
    roles: ['Tools.Call'],
    sub: '3f1b6b2e-0000-4000-8000-000000000001',
    tid: '72f988bf',
    uti: 'x',
    ver: '1.0',
  },
  'Entra ID, v2 with idtyp and without sub': {
    azp: '6e74172b-be56-4843-9ff4-e66a39bb12e3',
    azpacr: '1',
    idtyp: 'app',
    oid: '3f1b6b2e-0000-4000-8000-000000000001',
    roles: ['Tools.Call'],
    tid: '72f988bf',
    ver: '2.0',
  },
  Okta: { ver: 1, jti: 'AT.x', cid: '0oa1svc', scp: ['mcp:connect'], sub: '0oa1svc' },
  Auth0: { sub: 'aBcD1234@clients', azp: 'aBcD1234', scope: 'mcp:connect', gty: 'client-credentials' },
  'Auth0, without sub': { azp: 'aBcD1234', scope: 'mcp:connect', gty: ['client-credentials'] },
  'Duende IdentityServer': { client_id: 'ci', jti: 'x', scope: ['mcp:connect'] },
  'Amazon Cognito': { sub: '7j4client', token_use: 'access', client_id: '7j4client', scope: 'mcp/connect', version: 2 },
  'oidc-provider': { sub: 'ci', client_id: 'ci', scope: 'mcp:connect', jti: 'x' },
}

/** Two users of one client at each issuer, as it writes them without `sub`. */
const PEOPLE: Readonly<Record<string, (user: string) => object>> = {
  'Keycloak without the scope basic': (user) => ({ azp: 'app', sid: `s-${user}`, scope: 'profile', preferred_username: user }),
  'Keycloak, lightweight': () => ({ azp: 'app', scope: '', typ: 'Bearer' }),
  'an issuer of RFC 9068 that leaves sub out': (user) => ({ client_id: 'app', auth_time: 1, jti: user }),
  'an issuer that writes sub for machines only': (user) => ({ client_id: 'app', email: `${user}@example.com` }),
  'a delegation': (user) => ({ client_id: 'app', act: { sub: user } }),
}

describe('a token with a subject', () => {
  test('T-39 stands for it, whatever client it came by', () => {
    const names = [{}, { client_id: 'x' }, { azp: 'y' }].map((claims) => nameOf({ sub: 'alice', ...claims }))
    expect(names[0]).toBeDefined()
    expect(new Set(names).size).toBe(1)
  })
  test('T-39 of 255 characters stands for it, and so does such a client', () => {
    expect(nameOf({ sub: 'x'.repeat(255) })).toBe(JSON.stringify([ISSUER, 'sub', 'x'.repeat(255)]))
    expect(nameOf({ client_id: 'x'.repeat(255) })).toBe(JSON.stringify([ISSUER, 'client', 'x'.repeat(255)]))
    expect(nameOf({ client_id: 'x'.repeat(256) })).toBeUndefined()
  })
  test('T-39 of another issuer is another caller', () => {
    expect(nameOf({ sub: 'alice' })).not.toBe(nameOf({ sub: 'alice' }, { issuer: 'https://other.test' }))
  })
  test('T-39 and a machine of the same name are two callers', () => {
    expect(nameOf({ sub: 'alice' })).not.toBe(nameOf({ client_id: 'alice' }))
  })
  test.each([[''], [7], [null], [['alice']], [{ id: 'alice' }], [true], ['x'.repeat(256)]])(
    'T-39 %j is no subject, and its client does not stand in for it',
    (sub) => {
      for (const claims of [{ sub }, { sub, client_id: 'app' }, { sub, azp: 'app', gty: 'client-credentials' }])
        expect(nameOf(claims)).toBeUndefined()
      expect(reasonOf({ sub })).toMatch(/^sub is .*, expected /)
    },
  )
})

describe('a machine', () => {
  test.each(Object.entries(MACHINES))('T-39 of %s comes in, as one caller', (_issuer, claims) => {
    expect(nameOf(claims)).toBeDefined()
    expect(nameOf(claims)).toBe(nameOf({ ...claims, jti: 'another token' }))
  })
})

describe('a person', () => {
  test.each(Object.entries(PEOPLE))('T-39 of %s is refused, and so is the client', (_issuer, claims) => {
    expect([nameOf(claims('alice')), nameOf(claims('bob'))]).toEqual([undefined, undefined])
    expect(reasonOf(claims('alice'))).toMatch(/^sub is missing, and .*auth\.oauth\.subject/)
  })
  test('T-39 is not named by the client that an introspection answer always holds', () => {
    expect(nameOf({ active: true, client_id: 'app' }, { source: 'introspection' })).toBeUndefined()
    expect(nameOf({ active: true, client_id: 'app', username: 'bob' }, { source: 'introspection' })).toBeUndefined()
    expect(nameOf({ active: true, client_id: 'ci', gty: 'client-credentials' }, { source: 'introspection' })).toBeDefined()
  })
})

describe('another claim', () => {
  const subject = 'user.id'
  test('T-39 that the configuration names is the caller', () => {
    const alice = nameOf({ sub: 'pairwise-1', user: { id: 'alice' } }, { subject })
    expect(alice).toBe(nameOf({ sub: 'pairwise-2', user: { id: 'alice' } }, { subject }))
    expect(alice).not.toBe(nameOf({ user: { id: 'bob' } }, { subject }))
    expect(alice).not.toBe(nameOf({ sub: 'alice' }))
  })
  test('T-39 where it is missing, `sub` and the client of a person do not stand in for it', () => {
    expect(nameOf({ sub: 'alice', client_id: 'app' }, { subject })).toBeUndefined()
    expect(nameOf({ sub: 'alice', client_id: 'app', user: { id: '' } }, { subject })).toBeUndefined()
    expect(nameOf({ sub: 'ci', client_id: 'ci' }, { subject })).toBeDefined()
  })
})

test.each(
  `sid session_state auth_time amr nonce at_hash act may_act preferred_username username user_name user_id uid name given_name family_name
  nickname unique_name upn email phone_number login_hint`.split(/\s+/),
)('T-39 without a subject a token with "%s" is not of a machine, whatever marks it', (claim) => {
  const marked = { client_id: 'ci', gty: 'client-credentials' }
  expect(nameOf(marked)).toBe(JSON.stringify([ISSUER, 'client', 'ci']))
  expect(nameOf({ ...marked, [claim]: 'x' })).toBeUndefined()
})

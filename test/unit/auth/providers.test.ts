/** Access tokens as the providers of docs/identity document them, against the settings that the pages recommend. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { judgeClaims } from '../../../src/auth/inbound/verify/claims.ts'
import type { ClaimPath } from '../../../src/auth/inbound/verify/claim-value.ts'
import type { ClaimRule } from '../../../src/auth/inbound/verify/inbound-options.ts'

const ORIGIN = 'https://mcp.example.com'
const NOW = 1_800_000_000

interface Provider {
  readonly issuer: string
  readonly subject?: ClaimPath
  readonly otherAudiences?: readonly string[]
  readonly rule: Pick<ClaimRule, 'claim' | 'has'>
  /** As documented; `exp` is added. */
  readonly claims: Readonly<Record<string, unknown>>
  readonly principal: string
  /** What its tokens are for; by default every endpoint. */
  readonly opens?: string
  readonly scopes: readonly string[]
}

const ENTRA_CLIENT = '6e74172b-be56-4843-9ff4-e66a39bb12e3'
const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47'

const PROVIDERS: Readonly<Record<string, Provider>> = {
  keycloak: {
    issuer: 'https://keycloak.example.com/realms/trunkline',
    rule: { claim: 'groups', has: 'dev' },
    claims: {
      iss: 'https://keycloak.example.com/realms/trunkline',
      aud: [ORIGIN, 'account'],
      sub: '0c2fb4a0-6f8f-4e0f-9a3a-5a4e3d1b7a11',
      typ: 'Bearer',
      azp: 'trunkline',
      sid: 's',
      realm_access: { roles: ['user'] },
      resource_access: { 'my.client': { roles: ['x'] } },
      scope: 'mcp:connect profile',
      groups: ['/dev'],
    },
    principal: '["https://keycloak.example.com/realms/trunkline","sub","0c2fb4a0-6f8f-4e0f-9a3a-5a4e3d1b7a11"]',
    scopes: ['mcp:connect', 'profile'],
  },
  entra: {
    issuer: `https://login.microsoftonline.com/${TENANT}/v2.0`,
    subject: 'oid',
    otherAudiences: [`api://${ENTRA_CLIENT}`, ENTRA_CLIENT],
    rule: { claim: 'roles', has: 'Tools.Write' },
    claims: {
      iss: `https://login.microsoftonline.com/${TENANT}/v2.0`,
      aud: ENTRA_CLIENT,
      sub: 'pairwise-for-this-application',
      oid: '3f1b6b2e-0000-4000-8000-000000000001',
      tid: TENANT,
      azp: ENTRA_CLIENT,
      scp: 'mcp.access',
      roles: ['Tools.Write'],
      ver: '2.0',
    },
    principal: `["https://login.microsoftonline.com/${TENANT}/v2.0","claim","oid","3f1b6b2e-0000-4000-8000-000000000001"]`,
    scopes: ['mcp.access'],
  },
  okta: {
    issuer: 'https://example.okta.com/oauth2/default',
    rule: { claim: 'groups', has: 'Engineering' },
    claims: {
      ver: 1,
      iss: 'https://example.okta.com/oauth2/default',
      aud: ORIGIN,
      cid: '0oa1b2c3d4',
      uid: '00u1b2c3d4',
      scp: ['mcp:connect', 'offline_access'],
      sub: 'alice@example.com',
      groups: ['Everyone', 'Engineering'],
    },
    principal: '["https://example.okta.com/oauth2/default","sub","alice@example.com"]',
    scopes: ['mcp:connect', 'offline_access'],
  },
  auth0: {
    issuer: 'https://example.eu.auth0.com/',
    rule: { claim: 'https://mcp.example.com/groups', has: 'dev' },
    claims: {
      iss: 'https://example.eu.auth0.com/',
      sub: 'auth0|5f7c8ec7c33c6c004bbafe82',
      aud: [`${ORIGIN}/mcp`, 'https://example.eu.auth0.com/userinfo'],
      azp: 'a1b2c3d4',
      scope: 'openid mcp:connect',
      'https://mcp.example.com/groups': ['dev'],
    },
    principal: '["https://example.eu.auth0.com/","sub","auth0|5f7c8ec7c33c6c004bbafe82"]',
    opens: `${ORIGIN}/mcp`,
    scopes: ['openid', 'mcp:connect'],
  },
  dex: {
    issuer: 'https://dex.example.com',
    otherAudiences: ['trunkline'],
    rule: { claim: 'groups', has: 'example-org:platform' },
    claims: {
      iss: 'https://dex.example.com',
      sub: 'CgcyMzQyNzQ5EgZnaXRodWI',
      aud: 'trunkline',
      at_hash: 'x',
      email: 'alice@example.com',
      groups: ['example-org:platform'],
    },
    principal: '["https://dex.example.com","sub","CgcyMzQyNzQ5EgZnaXRodWI"]',
    scopes: [],
  },
  authelia: {
    issuer: 'https://auth.example.com',
    rule: { claim: 'groups', has: 'dev' },
    claims: {
      iss: 'https://auth.example.com',
      sub: 'e79b6494-8852-4439-860c-159f2cba83dc',
      aud: [ORIGIN],
      client_id: 'trunkline',
      scp: ['openid', 'groups'],
      scope: 'openid groups',
      groups: ['dev'],
    },
    principal: '["https://auth.example.com","sub","e79b6494-8852-4439-860c-159f2cba83dc"]',
    scopes: ['openid', 'groups'],
  },
}

const judge = ({ issuer, subject = 'sub', otherAudiences = [], rule, claims }: Provider, more: object = {}) =>
  judgeClaims(
    { exp: NOW + 300, iat: NOW, ...claims, ...more },
    {
      issuer: { issuer, subject },
      resource: { audience: `${ORIGIN}/mcp`, otherAudiences },
      map: [{ issuer: undefined, is: undefined, toolsets: ['ops'], ...rule }],
      source: 'jwt',
      nowMs: NOW * 1_000,
    },
  )

describe.each(Object.entries(PROVIDERS))('%s', (name, provider) => {
  test('a token of its documented shape comes in, as one caller, with toolsets and scopes', () => {
    const { admitted } = judge(provider)
    expect(admitted).toMatchObject({
      identity: { principal: provider.principal, toolsets: ['ops'], scopes: provider.scopes },
      audiences: [provider.opens ?? ORIGIN],
    })
    expect(admitted?.unmapped).toBeUndefined()
  })
  test('a token for another application does not', () => {
    expect(judge(provider, { aud: '00000003-0000-0000-c000-000000000000' }).admitted).toBeUndefined()
  })
  test('its page names the issuer and the audiences that the token has', () => {
    const page = readFileSync(new URL(`../../../docs/identity/${name}.md`, import.meta.url), 'utf8')
    for (const text of [provider.issuer, ...(provider.otherAudiences ?? [])]) expect(page).toContain(text)
  })
})

test('every page of a provider says what to do there, at Trunkline, and what goes wrong', () => {
  const folder = new URL('../../../docs/identity/', import.meta.url)
  const pages = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'refused-tokens.md')
  expect(pages.sort()).toEqual(
    ['auth0', 'authelia', 'dex', 'entra', 'github', 'google', 'keycloak', 'okta'].map((name) => `${name}.md`),
  )
  for (const name of pages) {
    const page = readFileSync(new URL(name, folder), 'utf8')
    expect(page, name).toMatch(/^## At /m)
    expect(page, name).toMatch(/^## Trunkline$/m)
    expect(page, name).toMatch(/^## What goes wrong$/m)
  }
})

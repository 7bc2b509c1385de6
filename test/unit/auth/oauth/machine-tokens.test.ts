/** Tokens without a person, of a client of its own or exchanged for the caller's: when another is obtained, and how often a server may ask for more. */
import { expect, test } from 'vitest'
import { ExchangeCredential } from '../../../../src/auth/oauth/exchange-credential.ts'
import { MachineCredential } from '../../../../src/auth/oauth/machine-credential.ts'
import type { OAuthEnvironment } from '../../../../src/auth/oauth/environment.ts'
import { TokenStore } from '../../../../src/auth/oauth/token-store.ts'
import { Seal } from '../../../../src/auth/seal.ts'

const SERVER = new URL('https://mcp.example/mcp')
const ISSUER = 'https://as.example'
const TTL_S = 3_600
const METADATA = { issuer: ISSUER, token_endpoint: `${ISSUER}/token`, grant_types_supported: ['client_credentials'] }
const OPTIONS = {
  issuer: ISSUER,
  client: { id: 'trunkline', secret: 's', privateKey: undefined, algorithm: '' },
  scopes: undefined,
  isPrivate: false,
} as const

/** An issuer whose tokens are `token-1`, `token-2`, …; the clock stands until it is set. */
const scene = () => {
  const clock = { nowMs: 0 }
  let granted = 0
  const environment: OAuthEnvironment = {
    fetch: async ({ url }) => {
      const answer = url.endsWith('/token')
        ? { access_token: `token-${++granted}`, token_type: 'Bearer', expires_in: TTL_S }
        : METADATA
      return { status: 200, text: JSON.stringify(answer) }
    },
    store: new TokenStore(new Seal({ keys: [Buffer.alloc(32, 7)] }), undefined, () => {}),
    now: () => clock.nowMs,
    subject: () => 'token of the caller',
    subjectRefused: () => {},
    secrets: () => {},
  }
  return { clock, environment }
}

test.each([
  ['of its own', (environment: OAuthEnvironment) => new MachineCredential(SERVER, { ...OPTIONS, mode: 'client' }, environment)],
  [
    'exchanged',
    (environment: OAuthEnvironment) =>
      new ExchangeCredential(SERVER, { ...OPTIONS, mode: 'exchange', audience: undefined }, 'ann', environment),
  ],
])('6.2 a token %s is used until half a minute before its end, then another is obtained', async (_whose, credentialFor) => {
  const { clock, environment } = scene()
  const credential = credentialFor(environment)
  const bearerAt = async (nowMs: number) => {
    clock.nowMs = nowMs
    await credential.ready()
    return credential.bearer.value
  }
  const endMs = TTL_S * 1_000
  expect([await bearerAt(0), await bearerAt(endMs - 30_001), await bearerAt(endMs - 30_000)]).toEqual([
    'Bearer token-1',
    'Bearer token-1',
    'Bearer token-2',
  ])
})

test('B247 a server may ask for more scopes as often again once it has refused a token as such', async () => {
  const { environment } = scene()
  const credential = new MachineCredential(SERVER, { ...OPTIONS, mode: 'client' }, environment)
  await credential.ready()
  const refuse = (status: 401 | 403): Promise<void> =>
    credential.renew({ used: credential.bearer.value, status, challenge: undefined })
  const stepsUntilRefused = async (): Promise<number> => {
    for (let steps = 0; steps < 10; steps++) {
      try {
        await refuse(403)
      } catch {
        return steps
      }
    }
    return Infinity
  }
  expect([await stepsUntilRefused(), await stepsUntilRefused()]).toEqual([2, 0])
  await refuse(401)
  expect(await stepsUntilRefused()).toBe(2)
})

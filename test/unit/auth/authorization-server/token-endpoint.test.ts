import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import type { ClientOptions } from '../../../../src/auth/credential-options.ts'
import type { FetchRequest } from '../../../../src/auth/fetch/safe-fetch.ts'
import { GrantRefused, isFresh, requestTokens } from '../../../../src/auth/authorization-server/token-endpoint.ts'

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const client = (facts: Partial<ClientOptions>): ClientOptions => ({
  id: 'us & them',
  secret: undefined,
  privateKey: undefined,
  algorithm: 'ES256',
  ...facts,
})

/** The form and the header that a token endpoint gets from this client. */
const sentBy = async (by: ClientOptions, tokenAuth: readonly string[] | undefined) => {
  const sent: FetchRequest[] = []
  await requestTokens({
    provider: { issuer: 'https://as.test', tokenEndpoint: 'https://as.test/token', tokenAuth },
    client: by,
    params: { grant_type: 'authorization_code', code: 'c' },
    reach: 'public',
    fetch: async (request) => {
      sent.push(request)
      return { status: 200, text: JSON.stringify({ access_token: 't', token_type: 'Bearer' }) }
    },
    now: () => 0,
  })
  const [{ body, headers }] = sent as [FetchRequest]
  return { form: new URLSearchParams(body), authorization: headers?.['authorization'] }
}

test.each([
  ['a header', client({ secret: 's:s' }), ['client_secret_basic', 'client_secret_post'], false],
  ['the form', client({ secret: 's:s' }), ['client_secret_post'], true],
  ['an assertion', client({ privateKey: PEM }), ['private_key_jwt'], false],
  ['nothing', client({}), ['none'], false],
] as const)(
  'a client that proves itself by %s is named in the form, as the Python SDK wants it',
  async (_by, by, auth, isPosted) => {
    const { form, authorization } = await sentBy(by, auth)
    expect(form.getAll('client_id')).toEqual(['us & them'])
    expect(form.has('client_secret')).toBe(isPosted)
    const isBasic = auth[0] === 'client_secret_basic'
    expect(authorization).toBe(isBasic ? `Basic ${Buffer.from('us+%26+them:s%3As').toString('base64')}` : undefined)
  },
)

const answering = (status: number, answer: string) =>
  requestTokens({
    provider: { issuer: 'https://as.test', tokenEndpoint: 'https://as.test/token', tokenAuth: ['none'] },
    client: client({}),
    params: { grant_type: 'refresh_token', refresh_token: 'a-secret-of-the-person' },
    reach: 'public',
    fetch: async () => ({ status, text: answer }),
    now: () => 0,
  })

test('T-14 a refusal has the description of the authorization server, without what was sent and without what looks like a token', async () => {
  const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJlLW9mLWEtdG9rZW4'
  const description = `Token is not active: a-secret-of-the-person\u001b[31m ${token} ${'x '.repeat(1_000)}`
  const refusal = await answering(400, JSON.stringify({ error: 'invalid_grant', error_description: description })).then(
    () => undefined,
    (error: unknown) => error as GrantRefused,
  )
  expect(refusal).toBeInstanceOf(GrantRefused)
  expect(refusal?.code).toBe('invalid_grant')
  expect(refusal?.message).toContain(
    'the authorization server refused: "invalid_grant" ("Token is not active: …\\u001b[31m … x x',
  )
  expect(refusal?.message.length).toBeLessThan(500)
})

test.each([
  [500, '{"error":"server_error"}'],
  [503, 'busy'],
  [429, '{"error":"slow_down"}'],
  [400, '{"error":"temporarily_unavailable"}'],
  [200, 'no JSON'],
  [200, '{"access_token":"a b"}'],
])('an answer with HTTP %i and %s says nothing about the grant', async (status, answer) => {
  const error = await answering(status, answer).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(Error)
  expect(error).not.toBeInstanceOf(GrantRefused)
})

test.each<[said: unknown, expiresAt: number | undefined]>([
  [60, 61_000],
  ['60', 61_000],
  [0, undefined],
  ['0', undefined],
  [-1, undefined],
  ['soon', undefined],
  [[60], undefined],
  [null, undefined],
])('a token whose expires_in is %j ends at %s ms', async (said, expiresAt) => {
  const tokens = await requestTokens({
    provider: { issuer: 'https://as.test', tokenEndpoint: 'https://as.test/token', tokenAuth: undefined },
    client: client({}),
    params: { grant_type: 'authorization_code', code: 'c' },
    reach: 'public',
    fetch: async () => ({ status: 200, text: JSON.stringify({ access_token: 't', token_type: 'Bearer', expires_in: said }) }),
    now: () => 1_000,
  })
  expect(tokens.expiresAt).toBe(expiresAt)
})

test.each<[status: number, answer: object, code: string, message: string]>([
  [400, {}, 'HTTP 400', 'the authorization server refused: "HTTP 400"'],
  [499, { error: 7 }, 'HTTP 499', 'the authorization server refused: "HTTP 499"'],
  [200, { error: 'bad_verification_code' }, 'bad_verification_code', 'the authorization server refused: "bad_verification_code"'],
  [400, { error: 'x', error_description: '' }, 'x', 'the authorization server refused: "x"'],
  [400, { error: 'x', error_description: 7 }, 'x', 'the authorization server refused: "x"'],
  [400, { error: 'x', error_description: 'why' }, 'x', 'the authorization server refused: "x" ("why")'],
  [
    400,
    { error: 'x', error_description: `${'a'.repeat(39)} ${'b'.repeat(40)} refresh_token` },
    'x',
    `the authorization server refused: "x" ("${'a'.repeat(39)} … refresh_token")`,
  ],
])('HTTP %i with %j refuses the grant with the code %s', async (status, answer, code, message) => {
  const refusal = answering(status, JSON.stringify(answer))
  await expect(refusal).rejects.toBeInstanceOf(GrantRefused)
  await expect(refusal).rejects.toMatchObject({ code, message })
})

test.each([408, 429, 500])('HTTP %i is said with the place of the authorization server', async (status) => {
  await expect(answering(status, '{}')).rejects.toThrow(`https://as.test: answered HTTP ${status}`)
})

test.each<[answer: object, isTaken: boolean]>([
  [{ token_type: 'Bearer' }, true],
  [{ token_type: 'BEARER' }, true],
  [{ token_type: 'N_A' }, true],
  [{}, true],
  [{ token_type: 'DPoP' }, false],
  [{ access_token: undefined }, false],
  [{ access_token: '' }, false],
  [{ access_token: 'a\nb' }, false],
])('a token answered with %j is a bearer token: %s', async (answer, isTaken) => {
  const tokens = answering(200, JSON.stringify({ access_token: 't', ...answer }))
  if (!isTaken) return expect(tokens).rejects.toThrow('the authorization server sent no bearer token')
  expect(await tokens).toEqual({ accessToken: 't', refreshToken: undefined, expiresAt: undefined })
})

test('the refresh token of an answer is kept where it is a text', async () => {
  const kept = async (refresh_token: unknown) =>
    (await answering(200, JSON.stringify({ access_token: 't', refresh_token }))).refreshToken
  expect([await kept('r'), await kept(7)]).toEqual(['r', undefined])
})

test('a token is fresh until half a minute before its end', () => {
  const freshAt = (nowMs: number, expiresAt: number | undefined = 100_000) =>
    isFresh({ accessToken: 't', refreshToken: undefined, expiresAt }, nowMs)
  expect([freshAt(69_999), freshAt(70_000)]).toEqual([true, false])
  expect(isFresh({ accessToken: 't', refreshToken: undefined, expiresAt: undefined }, 1e15)).toBe(true)
})

test('an assertion is for the issuer alone, and ends after a minute', async () => {
  const { form } = await sentBy(client({ privateKey: PEM }), ['private_key_jwt'])
  const [, claims = ''] = (form.get('client_assertion') ?? '').split('.')
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({
    iss: 'us & them',
    sub: 'us & them',
    aud: 'https://as.test',
    jti: expect.any(String),
    iat: 0,
    exp: 60,
  })
})

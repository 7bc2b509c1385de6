/** `credentials` of a server: one way at a time, complete, and nothing in it that is no secret is taken for one. */
import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { yaml } from './workspace.ts'

const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const load = async (credentials: string, url = 'https://a.example.com/mcp', env: Record<string, string> = {}) => {
  await using files = await yaml(`servers:\n  a:\n    url: ${url}\n    credentials: ${credentials}\n`)
  return await files.load(undefined, { env })
}

describe('a credential', () => {
  test('of a person has the shape that the gateway uses', async () => {
    const { servers } = await load('{ oauth: { per_user: true, scopes: [repo], client_id: id, client_secret: hush-hush } }')
    expect(servers[0]!.credential).toEqual({
      mode: 'user',
      issuer: undefined,
      offline: true,
      perUser: true,
      client: { id: 'id', secret: 'hush-hush', privateKey: undefined, algorithm: '' },
      clientDocument: undefined,
      scopes: ['repo'],
      isPrivate: false,
    })
  })

  test.each([
    ['oauth: {', ''],
    ['client_credentials: {', ' client_id: i, client_secret: s,'],
  ])('may have its authorization server in a private network, where that is said: %s', async (way, more) => {
    const at = async (said: string) => (await load(`{ ${way}${more} ${said} } }`)).servers[0]!.credential
    expect(await at('private_network: true')).toMatchObject({ isPrivate: true })
    expect(await at('scopes: []')).toMatchObject({ isPrivate: false })
  })

  test('of a machine may be a key, and its issuer is the text that was written', async () => {
    const given = '{ client_credentials: { client_id: id, private_key: "${KEY}", issuer: https://as.example.com } }'
    const { servers } = await load(given, undefined, { KEY })
    expect(servers[0]!.credential).toMatchObject({
      issuer: 'https://as.example.com',
      client: { algorithm: 'ES256', privateKey: KEY },
    })
  })

  test.each([
    ['two ways', '{ bearer: x, oauth: {} }', '"oauth" beside "bearer"'],
    ['two ways of OAuth', '{ oauth: {}, client_credentials: { client_id: i, client_secret: s } }', 'beside "oauth"'],
    ['a header that the token needs', '{ oauth: {}, headers: { authorization: x } }', 'a header Authorization beside "oauth"'],
    ['a secret of nobody', '{ oauth: { client_secret: s } }', '"client_secret" without client_id'],
    ['a machine without proof', '{ client_credentials: { client_id: i } }', 'expected client_secret or private_key'],
    ['a key that is none', '{ client_credentials: { client_id: i, private_key: x } }', 'not a private key in PEM'],
    ['a document without a path', '{ oauth: { client_metadata_url: "https://a.example.com" } }', 'an https URL with a path'],
    ['an unknown key', '{ oauth: { scope: repo } }', 'scope'],
  ])('is refused for %s', async (_name, given, message) => {
    await expect(load(given)).rejects.toThrow(message)
  })

  test('is refused over plain http to another machine', async () => {
    await expect(load('{ oauth: {} }', 'http://a.example.com/mcp')).rejects.toThrow('tokens are not sent over plain http')
    await expect(load('{ oauth: {} }', 'http://127.0.0.1:1/mcp')).resolves.toBeDefined()
  })

  test('T-14 is secret in its secrets alone', async () => {
    const { secrets } = await load('{ oauth: { client_id: public-id, client_secret: hush-hush, scopes: [profile] } }')
    expect(secrets).toEqual(['hush-hush'])
  })
})

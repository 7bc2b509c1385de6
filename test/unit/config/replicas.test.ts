import { describe, expect, test } from 'vitest'
import { yaml } from './workspace.ts'

const KEY = 'q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k='
const OTHER = '0123456789abcdef'.repeat(4)
const HEX = Buffer.from(KEY, 'base64').toString('hex')

describe('state.key', () => {
  test.each([
    ['one', KEY, [HEX]],
    ['two in a list', `["${KEY}", ${OTHER}]`, [HEX, OTHER]],
    ['two in one text, as of a file', `"${OTHER}\\n${KEY}\\n"`, [OTHER, HEX]],
    ['two with a comma', `"${OTHER}, ${KEY}"`, [OTHER, HEX]],
  ])('%s', async (_name, key, keys) => {
    await using files = await yaml(`servers: {}\nstate: { key: ${key} }\n`)
    const { stateKeys, secrets } = await files.load()
    expect(stateKeys).toEqual(keys)
    for (const each of keys) expect(secrets.some((secret) => secret === each || secret === KEY)).toBe(true)
  })

  test.each([
    ['three', `[${KEY}, ${OTHER}, ${'fe'.repeat(31)}dc]`],
    ['the same twice', `[${OTHER}, ${OTHER}]`],
    ['one repeated byte', '00'.repeat(32)],
    ['a short one', 'secret'],
    ['none', '[]'],
  ])('T-06 %s is refused with the remedy', async (_name, key) => {
    await using files = await yaml(`servers: {}\nstate: { key: ${key} }\n`)
    await expect(files.load()).rejects.toThrow(/state\.key: expected 32 random bytes.*openssl rand -base64 32/)
  })
})

describe('replicas and store', () => {
  const withKey = (text: string): string =>
    `servers: {}\nstate: { key: ${KEY} }\nreplicas: { url: http://10.0.0.3:7420/ }\n${text}\n`

  test('T-14 a password with a percent sign as it is, is a password, and is hidden', async () => {
    await using files = await yaml(withKey('store: redis://user:50%25%@h'))
    const { secrets } = await files.load()
    expect(secrets).toEqual(expect.arrayContaining(['redis://user:50%25%@h', '50%25%', '50%%']))
  })

  test.each([
    ['store: redis://h', { urls: ['redis://h'], sentinel: undefined, isCluster: false, prefix: 'trunkline' }],
    [
      'store: { url: ["rediss://u:p@a:6379", "rediss://b"], cluster: true, prefix: tl }',
      { urls: ['rediss://u:p@a:6379', 'rediss://b'], sentinel: undefined, isCluster: true, prefix: 'tl' },
    ],
    [
      'store: { url: ["redis://a:26379", "redis://b:26379"], sentinel: main }',
      { urls: ['redis://a:26379', 'redis://b:26379'], sentinel: 'main', isCluster: false, prefix: 'trunkline' },
    ],
    [
      'store: { url: redis://a:26379, sentinel: main, sentinel_user: u, sentinel_password: p }',
      { urls: ['redis://a:26379'], sentinel: 'main', sentinelLogin: { user: 'u', password: 'p' } },
    ],
  ])('%s', async (text, store) => {
    await using files = await yaml(withKey(text))
    expect(await files.load()).toMatchObject({ store, replicaUrl: 'http://10.0.0.3:7420' })
  })

  test.each([
    'http://h',
    'redis://',
    'redis://h/name',
    '[redis://a, redis://b]',
    '{ url: redis://a, cluster: true, sentinel: x }',
    // A cluster has no other database than 0.
    '{ url: redis://a/1, cluster: true }',
    '{ url: redis://a, prefx: x }',
    '{ url: redis://a, sentinel_password: x }',
    '{ url: redis://a, sentinel: main, sentinel_user: x }',
    '{}',
  ])('%s is no store, and the forms are named', async (store) => {
    await using files = await yaml(withKey(`store: ${store}`))
    await expect(files.load()).rejects.toThrow(/store: expected a URL such as redis:\/\/127\.0\.0\.1:6379/)
  })

  test.each([
    ['{ url: redis://h, tls: { server_name: h } }', /store\.tls: "tls" has no effect on redis:\/\//],
    ['{ url: rediss://h, tls: { ca: none.pem } }', /store\.tls\.ca: .*none\.pem cannot be used.*name a readable PEM file/],
    ['{ url: rediss://h, tls: { cert: none.pem } }', /store\.tls: "cert" and "key" belong together/],
    ['{ url: rediss://h, tls: { cacert: x } }', /store: expected a URL such as/],
  ])('T-21 %s is refused with its place', async (store, message) => {
    await using files = await yaml(withKey(`store: ${store}`))
    await expect(files.load()).rejects.toThrow(message)
  })

  test('a password in the URL of the store is a secret', async () => {
    await using files = await yaml(withKey('store: redis://u:p%40ss@h'))
    expect((await files.load()).secrets).toEqual(expect.arrayContaining(['p%40ss', 'p@ss', 'redis://u:p%40ss@h']))
  })

  test('the password of the sentinels is a secret', async () => {
    await using files = await yaml(withKey('store: { url: redis://h, sentinel: main, sentinel_password: of-sentinels }'))
    expect((await files.load()).secrets).toContain('of-sentinels')
  })

  test.each([
    ['replicas: { url: http://h:1 }', '"replicas" needs state.key'],
    [`state: { key: ${KEY} }\nstore: redis://h`, '"store" needs replicas.url'],
  ])('%s alone is refused with the remedy', async (text, message) => {
    await using files = await yaml(`servers: {}\n${text}\n`)
    await expect(files.load()).rejects.toThrow(message)
  })
})

/** Which authorization server speaks for a server, and who we are to it: asked in order, believed only where it names itself. */
import { describe, expect, test } from 'vitest'
import type { Reach } from '../../../../src/auth/fetch/reach.ts'
import { canonicalUri, discover } from '../../../../src/auth/authorization-server/discovery.ts'
import type { Provider } from '../../../../src/auth/authorization-server/discovery.ts'
import { clientFor, scopeRefused } from '../../../../src/auth/authorization-server/registration.ts'
import type { SignInOptions } from '../../../../src/auth/credential-options.ts'
import type { FetchRequest } from '../../../../src/auth/fetch/safe-fetch.ts'
import { TokenStore } from '../../../../src/auth/authorization-server/token-store.ts'
import { Seal } from '../../../../src/auth/seal.ts'
import { PER_USER } from '../../../support/credentials.ts'

const SERVER = new URL('https://mcp.example/team/mcp')
const ISSUER = 'https://as.example/tenant'
const REACH = {} as Reach
const RESOURCE = 'https://mcp.example/.well-known/oauth-protected-resource'

/** Answers from `pages`, 404 for all else, and remembers what was asked for. */
const web = (pages: Readonly<Record<string, object>>) => {
  const asked: string[] = []
  const fetch = async ({ url }: FetchRequest) => {
    asked.push(url)
    const page = pages[url]
    return page === undefined ? { status: 404, text: '' } : { status: 200, text: JSON.stringify(page) }
  }
  return { asked, fetch }
}
const resourcePage = (more: object = {}): object => ({ resource: SERVER.href, authorization_servers: [ISSUER], ...more })
const issuerPage = (more: object = {}): object => ({ issuer: ISSUER, token_endpoint: `${ISSUER}/token`, ...more })
const AT_INSERTED = 'https://as.example/.well-known/oauth-authorization-server/tenant'
const find = (pages: Readonly<Record<string, object>>, metadataUrl?: string): Promise<Provider> =>
  discover({ server: SERVER, metadataUrl, reach: REACH, fetch: web(pages).fetch })

describe('B242 the well-known places', () => {
  test('are asked in the given order: the path of the endpoint, the root, and three forms of the issuer', async () => {
    const last = 'https://as.example/tenant/.well-known/openid-configuration'
    const { asked, fetch } = web({ [RESOURCE]: resourcePage(), [last]: issuerPage() })
    await discover({ server: SERVER, metadataUrl: undefined, reach: REACH, fetch })
    expect(asked).toEqual([
      `${RESOURCE}/team/mcp`,
      RESOURCE,
      AT_INSERTED,
      'https://as.example/.well-known/openid-configuration/tenant',
      last,
    ])
  })

  test('have the query of the endpoint, which tells tenants apart', async () => {
    const server = new URL('https://mcp.example/mcp?tenant=a')
    const { asked, fetch } = web({
      [`${RESOURCE}/mcp?tenant=a`]: resourcePage({ resource: server.href }),
      [AT_INSERTED]: issuerPage(),
    })
    expect(await discover({ server, metadataUrl: undefined, reach: REACH, fetch })).toMatchObject({ resource: server.href })
    expect(asked).toEqual([`${RESOURCE}/mcp?tenant=a`, AT_INSERTED])
  })

  test('are not asked where the challenge names the document', async () => {
    const named = 'https://mcp.example/metadata'
    const { asked, fetch } = web({ [named]: resourcePage(), [AT_INSERTED]: issuerPage() })
    await discover({ server: SERVER, metadataUrl: named, reach: REACH, fetch })
    expect(asked).toEqual([named, AT_INSERTED])
  })

  test('of a server of 2025-03-26 end at its own origin, with the usual endpoints where nothing answers', async () => {
    expect(await find({})).toMatchObject({ issuer: 'https://mcp.example', tokenEndpoint: 'https://mcp.example/token' })
  })
})

describe('B241 metadata', () => {
  test.each(['https://mcp.example/team/mcp', 'https://mcp.example/team', 'https://mcp.example'])(
    'of the server or of a path above it is taken: %s',
    async (resource) => {
      const pages = { [RESOURCE]: resourcePage({ resource }), [AT_INSERTED]: issuerPage() }
      expect((await find(pages)).resource).toBe(resource)
    },
  )

  test.each([
    'https://mcp.example/team/mcp/below',
    'https://mcp.example/team/mc',
    'https://mcp.example/other',
    'https://other.example/team/mcp',
    'http://mcp.example/team/mcp',
    'https://mcp.example/team/mcp?x=1',
    'not a URL',
    undefined,
  ])('of another resource is refused: %s', async (resource) => {
    const pages = { [RESOURCE]: resourcePage({ resource }), [AT_INSERTED]: issuerPage() }
    await expect(find(pages)).rejects.toMatchObject({ kind: 'auth_required', executed: 'no' })
  })

  test.each(['https://as.example/tenant/', 'https://as.example', 'https://AS.example/tenant', undefined])(
    'of another issuer is refused: %s',
    async (issuer) => {
      const pages = { [RESOURCE]: resourcePage(), [AT_INSERTED]: issuerPage({ issuer }) }
      await expect(find(pages)).rejects.toThrow('is of another issuer')
    },
  )
})

test('B241 B242 a document about something else is passed over, and named if there is no other', async () => {
  const last = 'https://as.example/tenant/.well-known/openid-configuration'
  // A host of many tenants answers below its first well-known with its own document, whatever follows.
  const root = issuerPage({ issuer: 'https://as.example', token_endpoint: 'https://as.example/token' })
  const wrong = { [`${RESOURCE}/team/mcp`]: { error: 'not found' }, [RESOURCE]: resourcePage(), [AT_INSERTED]: root }
  expect(await find({ ...wrong, [last]: issuerPage() })).toMatchObject({ issuer: ISSUER, tokenEndpoint: `${ISSUER}/token` })
  await expect(find(wrong)).rejects.toThrow('is of another issuer')
  await expect(find({ [`${RESOURCE}/team/mcp`]: { error: 'not found' } })).rejects.toThrow('is of another resource')
})

describe('B241 of several authorization servers', () => {
  const named = (...issuers: string[]) => ({
    [RESOURCE]: resourcePage({ authorization_servers: issuers }),
    [AT_INSERTED]: issuerPage(),
  })

  test('the first with usable metadata is taken', async () => {
    expect((await find(named('https://gone.example', 'no URL', ISSUER))).issuer).toBe(ISSUER)
    const foreign = { 'https://odd.example/.well-known/oauth-authorization-server': issuerPage() }
    expect((await find({ ...named('https://odd.example', ISSUER), ...foreign })).issuer).toBe(ISSUER)
    expect((await find(named(ISSUER, 'https://gone.example'))).issuer).toBe(ISSUER)
  })

  test('the failure of the first is reported if none is usable', async () => {
    await expect(find(named('https://gone.example', 'https://away.example'))).rejects.toThrow(/no metadata .*gone\.example/)
  })

  test('one that cannot be reached now is not passed over', async () => {
    const { fetch } = web(named('https://down.example', ISSUER))
    const found = discover({
      server: SERVER,
      metadataUrl: undefined,
      reach: REACH,
      fetch: async (request) => (request.url.startsWith('https://down.example') ? { status: 503, text: '' } : fetch(request)),
    })
    await expect(found).rejects.toMatchObject({ kind: 'unreachable' })
  })
})

describe('B241 an issuer without a path', () => {
  const find1 = (named: string, own: string) =>
    find({
      [RESOURCE]: resourcePage({ authorization_servers: [named] }),
      'https://root.example/.well-known/oauth-authorization-server': issuerPage({ issuer: own }),
    })
  test.each([
    ['https://root.example/', 'https://root.example'],
    ['https://root.example', 'https://root.example/'],
    ['https://root.example/', 'https://root.example/'],
  ])('named %s by the resource and %s by itself is one, and called as it calls itself', async (named, own) => {
    expect((await find1(named, own)).issuer).toBe(own)
  })
  test.each([
    ['https://root.example/', 'https://root.example//'],
    ['https://root.example/', 'http://root.example'],
    ['https://root.example', 'https://root.example:443'],
    ['https://root.example/', 'https://root.example/?'],
    ['https://root.example/', 'https://other.example'],
  ])('named %s by the resource and %s by itself is two', async (named, own) => {
    await expect(find1(named, own)).rejects.toThrow('is of another issuer')
  })
})

describe('B245 what one issuer knows us by', () => {
  const OPTIONS: SignInOptions = {
    mode: 'user',
    perUser: true,
    client: undefined,
    clientDocument: undefined,
    scopes: undefined,
    isPrivate: false,
  }

  test('is kept, and told no other: a changed issuer is registered with anew', async () => {
    const store = new TokenStore(new Seal({ keys: [Buffer.alloc(32, 1)] }), undefined, () => undefined)
    const registrations: string[] = []
    const clientAt = async (issuer: string): Promise<string> => {
      const pages = {
        [RESOURCE]: resourcePage({ authorization_servers: [issuer] }),
        [`${issuer}/.well-known/oauth-authorization-server`]: issuerPage({ issuer, registration_endpoint: `${issuer}/register` }),
      }
      const { client } = await clientFor({
        provider: await find(pages),
        options: OPTIONS,
        redirectUri: 'http://127.0.0.1:9/connect/callback',
        document: undefined,
        scope: undefined,
        reach: REACH,
        fetch: async ({ url }) => {
          registrations.push(url)
          return { status: 201, text: JSON.stringify({ client_id: `client ${registrations.length}` }) }
        },
        store,
        now: () => 0,
      })
      return client.id
    }
    expect(await clientAt('https://one.example')).toBe('client 1')
    expect(await clientAt('https://one.example')).toBe('client 1')
    expect(await clientAt('https://two.example')).toBe('client 2')
    expect(await clientAt('https://one.example')).toBe('client 1')
    expect(registrations).toEqual(['https://one.example/register', 'https://two.example/register'])
  })
})

describe('B246 B247 the scopes of a registration', () => {
  const REDIRECT_URI = 'http://127.0.0.1:9/connect/callback'
  /** A server that answers registrations as told; `asked`: what each said of scopes. */
  const registering = async (answer: (scope: string | undefined) => { status: number; more?: object }) => {
    const store = new TokenStore(new Seal({ keys: [Buffer.alloc(32, 1)] }), undefined, () => undefined)
    const issuer = 'https://one.example'
    const provider = await find({
      [RESOURCE]: resourcePage({ authorization_servers: [issuer] }),
      [`${issuer}/.well-known/oauth-authorization-server`]: issuerPage({ issuer, registration_endpoint: `${issuer}/register` }),
    })
    const asked: (string | undefined)[] = []
    const clientFor1 = (scope: string | undefined): Promise<string> =>
      clientFor({
        provider,
        options: PER_USER,
        redirectUri: REDIRECT_URI,
        document: undefined,
        scope,
        reach: REACH,
        fetch: async ({ body }) => {
          const { scope: said } = JSON.parse(body ?? '') as { scope?: string }
          asked.push(said)
          const { status, more } = answer(said)
          return { status, text: JSON.stringify(status === 201 ? { client_id: `client ${asked.length}`, ...more } : {}) }
        },
        store,
        now: () => 0,
      }).then(({ client }) => client.id)
    return { asked, clientFor: clientFor1, refuse: () => scopeRefused(store, provider, REDIRECT_URI) }
  }

  test('are not said, so that one client may ask for more later', async () => {
    const { asked, clientFor } = await registering(() => ({ status: 201 }))
    expect([await clientFor('read'), await clientFor('read write')]).toEqual(['client 1', 'client 1'])
    expect(asked).toEqual([undefined])
  })
  test('are said to a server that answers with a bound which is too narrow, once for the same wish', async () => {
    const { asked, clientFor } = await registering(() => ({ status: 201, more: { scope: 'read' } }))
    expect(await clientFor('read')).toBe('client 1')
    expect([await clientFor('read write'), await clientFor('write'), await clientFor('read write')]).toEqual(
      Array.from({ length: 3 }, () => 'client 2'),
    )
    expect(asked).toEqual([undefined, 'read write'])
  })
  test('are said to a server that registers nobody without', async () => {
    const { asked, clientFor } = await registering((scope) => ({ status: scope === undefined ? 400 : 201 }))
    expect(await clientFor('read')).toBe('client 2')
    expect(await clientFor('read')).toBe('client 2')
    expect(asked).toEqual([undefined, 'read'])
  })
  test('are said to a server that refused one at the authorization endpoint, once', async () => {
    const { asked, clientFor, refuse } = await registering(() => ({ status: 201 }))
    await clientFor('read')
    await refuse()
    expect(await clientFor('read write')).toBe('client 2')
    await refuse()
    expect(await clientFor('read write')).toBe('client 2')
    expect(asked).toEqual([undefined, 'read write'])
  })
  test('where nothing helps, the refusal is told', async () => {
    const { clientFor } = await registering(() => ({ status: 400 }))
    await expect(clientFor('read')).rejects.toThrow('did not register us (HTTP 400)')
    await expect(clientFor(undefined)).rejects.toThrow('did not register us (HTTP 400)')
  })
})

test.each([
  ['https://ann:secret@mcp.example/mcp#top', 'https://mcp.example/mcp'],
  ['https://:secret@mcp.example/', 'https://mcp.example'],
  ['https://mcp.example/?x=1', 'https://mcp.example/?x=1'],
])('T-14 the name of the resource %s is %s, without a credential', (url, name) => {
  expect(canonicalUri(new URL(url))).toBe(name)
})

test.each([
  ['does not say how clients authenticate', undefined, 'client_secret_basic'],
  ['takes public clients', ['client_secret_basic', 'none'], 'none'],
  ['takes a secret in the form', ['private_key_jwt', 'client_secret_post'], 'client_secret_post'],
  ['takes nothing that a registered client can do', ['tls_client_auth'], 'none'],
])('a client that registers at a server that %s', async (_what, methods, expected) => {
  let said: unknown
  const pages = {
    [`${RESOURCE}/team/mcp`]: resourcePage(),
    [AT_INSERTED]: issuerPage({ registration_endpoint: `${ISSUER}/register`, token_endpoint_auth_methods_supported: methods }),
  }
  await clientFor({
    provider: await find(pages),
    options: { mode: 'user', perUser: true, client: undefined, clientDocument: undefined, scopes: undefined, isPrivate: false },
    redirectUri: 'http://127.0.0.1:9/connect/callback',
    document: undefined,
    scope: undefined,
    reach: REACH,
    fetch: async ({ body }) => {
      said = JSON.parse(body ?? '')
      return { status: 201, text: JSON.stringify({ client_id: 'one' }) }
    },
    store: new TokenStore(new Seal({ keys: [Buffer.alloc(32, 7)] }), undefined, () => {}),
    now: () => 0,
  })
  expect(said).toMatchObject({ token_endpoint_auth_method: expected })
})

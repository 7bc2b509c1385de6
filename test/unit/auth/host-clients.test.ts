/** Which clients the registration proxy knows, and to which addresses it sends a person's browser back (T-08). */
import { describe, expect, test } from 'vitest'
import { HostClients, isRedirectOf } from '../../../src/auth/inbound/host-clients.ts'
import type { HostClient } from '../../../src/auth/inbound/host-clients.ts'
import { Seal } from '../../../src/auth/seal.ts'

const seal = new Seal({ keys: [Buffer.alloc(32, 7)] })
const BACK = 'http://127.0.0.1:9/callback'
const ID = 'https://host.example/client'

/** Clients, and the documents that are at URLs. */
const clientsWith = (documents: Readonly<Record<string, { status?: number; text: string } | Error>> = {}) => {
  const read: string[] = []
  const clients = new HostClients(
    seal,
    async ({ url }) => {
      read.push(url)
      const found = documents[url] ?? { status: 404, text: '' }
      if (found instanceof Error) throw found
      return { status: 200, ...found }
    },
    'public',
    () => 0,
  )
  return { clients, read }
}
const documentOf = (id: string, more: object = {}): { text: string } => ({
  text: JSON.stringify({ client_id: id, client_name: 'A host', redirect_uris: [BACK], ...more }),
})

describe('a client that registers', () => {
  const register = (metadata: unknown) => clientsWith().clients.register(metadata)
  const uris = (...redirect_uris: unknown[]) => register({ redirect_uris })

  test('is known by its id afterwards, by its name in a length that can be shown', async () => {
    const { clients } = clientsWith()
    const client = clients.register({ client_name: `  ${'n'.repeat(200)} `, redirect_uris: [BACK, 'https://host.example/back'] })
    expect(client).toMatchObject({
      name: 'n'.repeat(100),
      redirectUris: [BACK, 'https://host.example/back'],
      document: undefined,
    })
    expect(await clients.find((client as HostClient).id)).toEqual(client)
    expect(await clients.find('another')).toBeUndefined()
    for (const client_name of [undefined, '  ', 7])
      expect(register({ client_name, redirect_uris: [BACK] })).toMatchObject({ name: 'An application' })
  })

  test.each([[undefined], ['x'], [[]], [null]])('with metadata %j is refused', (metadata) => {
    expect(register(metadata)).toHaveProperty('error')
  })

  test('names one to ten addresses', () => {
    const many = (count: number): string[] => Array.from({ length: count }, (_, at) => `https://host.example/${at}`)
    expect(uris()).toMatchObject({ error: 'invalid_redirect_uri' })
    expect(uris(...many(10))).toHaveProperty('id')
    expect(uris(...many(11))).toMatchObject({ error: 'invalid_redirect_uri' })
    expect(register({ redirect_uris: BACK })).toMatchObject({ error: 'invalid_redirect_uri' })
  })

  test.each([
    'https://host.example/back?a=1',
    'http://127.0.0.1:9/callback',
    'http://localhost/callback',
    'http://[::1]:9/callback',
    'cursor://anysphere.cursor/callback',
    'com.example.app:/callback',
    `https://host.example/${'x'.repeat(512 - 21)}`,
  ])('may be sent back to %s', (uri) => {
    expect(uris(uri)).toHaveProperty('id')
  })

  test.each([
    'http://host.example/back',
    'https://host.example/back#part',
    'https://alice@host.example/back',
    'https://:secret@host.example/back',
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'https://host.example/a b',
    'https://host.example/ü',
    '/back',
    '',
    7,
    `https://host.example/${'x'.repeat(512 - 20)}`,
  ])('may not be sent back to %s, nor beside an address that is good', (uri) => {
    expect(uris(uri)).toMatchObject({ error: 'invalid_redirect_uri' })
    expect(uris(BACK, uri)).toMatchObject({ error: 'invalid_redirect_uri' })
  })

  test('may say how it authenticates, as a text', () => {
    const refused = register({ redirect_uris: [BACK], token_endpoint_auth_method: 7 })
    expect(refused).toMatchObject({ error: 'invalid_client_metadata' })
    expect(register({ redirect_uris: [BACK], token_endpoint_auth_method: 'none' })).toHaveProperty('id')
  })
})

describe('a client with a metadata document', () => {
  test('is what its document says', async () => {
    const { clients } = clientsWith({ [ID]: documentOf(ID) })
    expect(await clients.find(ID)).toEqual({ id: ID, name: 'A host', redirectUris: [BACK], document: ID })
  })

  test.each([undefined, '  ', 7])('is refused where its document has the name %j', async (client_name) => {
    const { clients } = clientsWith({ [ID]: documentOf(ID, { client_name }) })
    expect(await clients.find(ID)).toBeUndefined()
  })

  test('T-32 is asked for once by requests at the same time, and at most 64 different ones are', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const read: string[] = []
    const clients = new HostClients(
      seal,
      async ({ url }) => {
        read.push(url)
        await promise
        return { status: 200, ...documentOf(url) }
      },
      'public',
      () => 0,
    )
    const ids = Array.from({ length: 64 }, (_, at) => `${ID}/${at}`)
    const found = Promise.all([...ids, ...ids].map((id) => clients.find(id)))
    await expect(clients.find(`${ID}/more`)).rejects.toMatchObject({ kind: 'overloaded' })
    expect(read).toEqual(ids)
    resolve()
    expect((await found).map((client) => client?.id)).toEqual([...ids, ...ids])
    expect(await clients.find(`${ID}/more`)).toBeDefined()
  })

  test('may have an address of 512 characters and a document of 16 KiB', async () => {
    const id = `https://host.example/${'x'.repeat(512 - 21)}`
    const { text } = documentOf(id, { padding: '' })
    const padded = text.replace('"padding":""', `"padding":"${'x'.repeat(16_384 - text.length)}"`)
    expect(padded).toHaveLength(16_384)
    expect(await clientsWith({ [id]: { text: padded } }).clients.find(id)).toMatchObject({ id })
    expect(await clientsWith({ [id]: { text: `${padded} ` } }).clients.find(id)).toBeUndefined()
    expect(await clientsWith({ [`${id}x`]: documentOf(`${id}x`) }).clients.find(`${id}x`)).toBeUndefined()
  })

  test.each([
    'https://host.example/',
    'https://host.example/client#part',
    'https://HOST.example/client',
    'https://host.example/a/../client',
    'https://',
    `https://host.example/${'x'.repeat(512)}`,
  ])('has no document at %s, and nothing is read there', async (id) => {
    const { clients, read } = clientsWith({ [id]: documentOf(id) })
    expect([await clients.find(id), read]).toEqual([undefined, []])
  })

  test.each([
    ['of another client', documentOf('https://host.example/other')],
    ['that is no JSON', { text: 'x' }],
    ['that comes with an error', { ...documentOf(ID), status: 500 }],
    ['that is longer than 16 KiB', documentOf(ID, { padding: 'x'.repeat(16_384) })],
    ['without addresses', documentOf(ID, { redirect_uris: [] })],
    ['that cannot be read', new Error('refused')],
  ])('is not known by a document %s, which is read again', async (_, document) => {
    const { clients, read } = clientsWith({ [ID]: document })
    expect(await clients.find(ID)).toBeUndefined()
    expect(await clients.find(ID)).toBeUndefined()
    expect(read).toEqual([ID, ID])
  })
})

describe('a browser is sent back', () => {
  const client = (document: string | undefined, ...redirectUris: string[]): HostClient => ({
    id: 'x',
    name: 'x',
    redirectUris,
    document,
  })

  test('to an address of the client, letter by letter', () => {
    const registered = client(undefined, BACK, 'https://host.example/back')
    expect(isRedirectOf(registered, 'https://host.example/back')).toBe(true)
    for (const uri of ['https://host.example/back/', 'https://host.example:8443/back', 'http://127.0.0.1:10/other', ''])
      expect(isRedirectOf(registered, uri), uri).toBe(false)
  })

  // VS Code registers two ports, and listens at a third if they are in use (microsoft/vscode#278512).
  test.each([
    ['a document', ID],
    ['a registration', undefined],
  ])('to any port of a loopback address, if the client has %s, and to nothing else', (_, document) => {
    const local = client(document, 'http://127.0.0.1/callback', 'https://host.example/back')
    expect(isRedirectOf(local, 'http://127.0.0.1:52123/callback')).toBe(true)
    for (const uri of [
      'http://127.0.0.1:52123/other',
      'http://localhost:52123/callback',
      'https://127.0.0.1:52123/callback',
      'https://host.example:8443/back',
      'http://host.example:80/callback',
      'http://127.0.0.1:52123/x/../callback',
      'http://127.0.0.1:52123/callback?x=1',
      'http://127.0.0.1:52123@evil.example/callback',
      'HTTP://127.0.0.1:52123/callback',
      'not a url',
    ])
      expect(isRedirectOf(local, uri), uri).toBe(false)
  })
})

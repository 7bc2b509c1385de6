/** The official clients of both generations get in by themselves: challenge, metadata, registration, code flow, token (B232, B233, B264). */
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport as Sse1 } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { APP, startAuthorizationServer } from '../../support/authorization-server.ts'
import type { AuthorizationServer } from '../../support/authorization-server.ts'
import { oauthOf } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { SigningIn } from '../../support/signing-in.ts'

let issuer: AuthorizationServer
beforeAll(async () => {
  issuer = await startAuthorizationServer()
})
afterAll(() => issuer[Symbol.asyncDispose]())

/** A gateway that knows itself by the address the system gave it. */
const start = async (facts: Partial<ResourceServerOptions> = {}): Promise<TestGateway> => {
  const gateway = await startGateway({ servers: { a: fake.offering('echo'), b: fake.offering('other') } })
  const { running, url } = gateway
  const { configuration } = running
  const auth = oauthOf(issuer, url.href, facts)
  const scopes = auth.oauth?.scopes ?? []
  await running.apply(
    { ...configuration, host: { ...configuration.host, auth }, gateway: { ...configuration.gateway, scopes } },
    new Set(),
  )
  return gateway
}

interface Visitor {
  connect(): Promise<void>
  finish(returned: URLSearchParams): Promise<void>
  tools(): Promise<string[]>
  call(name: string): Promise<unknown>
  close(): Promise<void>
}
type Visit = (url: URL, person: SigningIn) => Visitor

const sdk1 =
  (Transport: typeof Http1 | typeof Sse1): Visit =>
  (url, authProvider) => {
    const open = () => new Client1({ name: 'one', version: '1' })
    let client = open()
    let transport = new Transport(url, { authProvider })
    return {
      connect: () => client.connect(transport),
      finish: async (returned) => {
        await transport.finishAuth(returned.get('code') ?? '')
        transport = new Transport(url, { authProvider })
        await client.close().catch(() => undefined)
        client = open()
      },
      tools: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: (name) => client.callTool({ name, arguments: {} }),
      close: () => client.close(),
    }
  }
const sdk2 =
  (mode: 'legacy' | 'auto'): Visit =>
  (url, authProvider) => {
    const open = () => new Client2({ name: 'two', version: '1' }, { versionNegotiation: { mode } })
    let client = open()
    let transport = new Http2(url, { authProvider })
    return {
      connect: () => client.connect(transport),
      finish: async (returned) => {
        await transport.finishAuth(returned)
        transport = new Http2(url, { authProvider })
        await client.close().catch(() => undefined)
        client = open()
      },
      tools: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: (name) => client.callTool({ name, arguments: {} }),
      close: () => client.close(),
    }
  }

const CLIENTS: readonly (readonly [string, Visit, string])[] = [
  ['SDK 1 over Streamable HTTP', sdk1(Http1), '/mcp'],
  ['SDK 1 over HTTP+SSE', sdk1(Sse1), '/sse'],
  ['SDK 1 at one server', sdk1(Http1), '/servers/a/mcp'],
  ['SDK 2, legacy', sdk2('legacy'), '/mcp'],
  ['SDK 2, modern', sdk2('auto'), '/mcp'],
  ['SDK 2 at one server', sdk2('auto'), '/servers/a/mcp'],
]

const enter = async (visitor: Visitor, person: SigningIn): Promise<void> => {
  await expect(visitor.connect()).rejects.toThrow()
  await visitor.finish(person.returned ?? new URLSearchParams())
  await visitor.connect()
}

test.each(CLIENTS)('B232 B233 B264 %s', async (_name, visit, path) => {
  await using gateway = await start()
  const person = new SigningIn(issuer, 'alice')
  const visitor = visit(new URL(path, gateway.url), person)
  await enter(visitor, person)
  expect(person.asked).toEqual([['mcp:connect']])
  const echo = path.startsWith('/servers') ? 'echo' : 'a__echo'
  expect(await visitor.tools()).toContain(echo)
  expect(await visitor.call(echo)).toMatchObject({ content: expect.any(Array) })
  expect(JSON.stringify(gateway.log.entries)).not.toContain(person.tokens()?.access_token)
  await visitor.close()
})

const SCOPES = ['mcp:connect', 'mcp:a', 'mcp:b', 'mcp:b:write']

describe('servers behind scopes', () => {
  test.each([
    ['by default', undefined, ['mcp:a', 'mcp:b', 'mcp:connect'], ['a__echo']],
    ['with all of them', 'all', ['mcp:a', 'mcp:b', 'mcp:b:write', 'mcp:connect'], ['a__echo', 'b__other']],
    ['with none of theirs', 'entrance', ['mcp:connect'], []],
  ] as const)(
    'B238 %s: a client that follows challenge and metadata gets these at /mcp',
    async (_name, advertise, asked, tools) => {
      await using gateway = await start({ scopes: SCOPES, ...(advertise !== undefined && { advertise }) })
      for (const visit of [sdk1(Http1), sdk2('legacy'), sdk2('auto')]) {
        const person = new SigningIn(issuer, 'alice')
        const visitor = visit(gateway.url, person)
        await enter(visitor, person)
        expect([person.asked, await visitor.tools()]).toEqual([[asked], tools])
        await visitor.close()
      }
      const document = await fetch(new URL('/.well-known/oauth-protected-resource/mcp', gateway.url))
      expect(((await document.json()) as { scopes_supported: string[] }).scopes_supported.sort()).toEqual(asked)
    },
  )

  test.each([
    ['a', undefined, ['mcp:a', 'mcp:connect'], ['echo']],
    ['a', 'entrance', ['mcp:a', 'mcp:connect'], ['echo']],
    ['b', 'all', ['mcp:b', 'mcp:b:write', 'mcp:connect'], ['other']],
  ] as const)('B238 /servers/%s/mcp names what it needs (advertise: %s)', async (key, advertise, asked, tools) => {
    await using gateway = await start({ scopes: SCOPES, ...(advertise !== undefined && { advertise }) })
    for (const visit of [sdk1(Http1), sdk2('auto')]) {
      const person = new SigningIn(issuer, 'alice')
      const visitor = visit(new URL(`/servers/${key}/mcp`, gateway.url), person)
      await enter(visitor, person)
      expect([person.asked, await visitor.tools()]).toEqual([[asked], tools])
      expect(await visitor.call(tools[0])).toMatchObject({ content: expect.any(Array) })
      await visitor.close()
    }
  })

  test('B247 a client that steps up keeps what it had', async () => {
    await using gateway = await start({ scopes: SCOPES })
    const person = new SigningIn(issuer, 'bob', APP.id)
    const visitor = sdk1(Http1)(gateway.url, person)
    await enter(visitor, person)
    await visitor.call('b__other').catch(() => undefined)
    await visitor.finish(person.returned ?? new URLSearchParams())
    await visitor.connect()
    expect(await visitor.tools()).toEqual(['a__echo', 'b__other'])
    await visitor.close()
  })
})

describe('step-up', () => {
  test.each(CLIENTS.filter(([, , path]) => path === '/mcp'))(
    'B238 %s asks for more when a call takes more',
    async (_name, visit) => {
      await using gateway = await start({ scopes: SCOPES, advertise: 'entrance' })
      const person = new SigningIn(issuer, 'bob', APP.id)
      const visitor = visit(gateway.url, person)
      await enter(visitor, person)
      expect(await visitor.tools()).toEqual([])
      await visitor.call('b__other').catch(() => undefined)
      expect(person.asked).toEqual([['mcp:connect'], ['mcp:b', 'mcp:b:write', 'mcp:connect']])
      await visitor.finish(person.returned ?? new URLSearchParams())
      await visitor.connect()
      expect(await visitor.tools()).toEqual(['b__other'])
      expect(await visitor.call('b__other')).toMatchObject({ content: expect.any(Array) })
      await visitor.close()
    },
  )
})

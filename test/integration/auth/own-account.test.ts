/** The gateway's own account at a server: what it says of itself there ([ext auth/oauth-client-credentials]; BRIDGING 3.1, 6.2). */
import { expect, test, vi } from 'vitest'
import type { CredentialOptions } from '../../../src/auth/credential-options.ts'
import { describes, fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import { KEY } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'

const EXTENSION = 'io.modelcontextprotocol/oauth-client-credentials'
const OWN: CredentialOptions = {
  mode: 'client',
  client: { id: 'trunkline', secret: 'secret', privateKey: undefined, algorithm: '' },
  scopes: undefined,
  issuer: undefined,
  isPrivate: false,
}

test('[ext auth/oauth-client-credentials, For MCP clients] every request to such a server declares the extension, to no other one does', async () => {
  await using issuer = await FakeIssuer.start()
  await using a = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] }))
  await using b = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] }))
  protect(a, issuer)
  const said = new Map<string, Map<string, unknown>>()
  for (const [key, server] of Object.entries({ a, b })) {
    const methods = new Map<string, unknown>()
    const guard = server.intercept
    said.set(key, methods)
    server.intercept = (request, response, body) => {
      const isTaken = guard(request, response, body)
      if (!isTaken) methods.set(...declaredIn(body))
      return isTaken
    }
  }
  await using gateway = await startGateway({
    servers: {},
    fakes: new Map(Object.entries({ a, b })),
    options: { a: { credential: OWN } },
  })
  await using host = await modernHttp.connect(gateway, {
    capabilities: { roots: {}, extensions: { [EXTENSION]: { of: 'the host' } } },
  })
  for (const name of ['a__echo', 'b__echo'])
    expect(await host.call('tools/call', { name, arguments: {} })).toMatchObject({ resultType: 'complete' })
  expect([...said.get('a')!]).toEqual(expect.arrayContaining([...said.get('b')!.keys()].map((method) => [method, {}])))
  expect([...said.get('b')!.keys()]).toEqual(expect.arrayContaining(['server/discover', 'tools/list', 'tools/call']))
  expect(new Set(said.get('b')!.values())).toEqual(new Set([undefined]))
  expect(describes(await a.until('tools/call'))[KEY.capabilities]).toEqual({ roots: {}, extensions: { [EXTENSION]: {} } })
  expect(new Set(issuer.grants)).toEqual(new Set(['client_credentials']))
})

test('F-25 the credential of a server that is no longer configured is closed', async () => {
  await using issuer = await FakeIssuer.start()
  await using a = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] }))
  protect(a, issuer)
  await using gateway = await startGateway({
    servers: {},
    fakes: new Map(Object.entries({ a })),
    options: { a: { credential: OWN } },
  })
  const { running } = gateway
  const { credential } = running.fleet.get('a')!
  const closed = vi.spyOn(credential!, 'close')
  await running.apply({ ...running.configuration, servers: [] }, new Set())
  await vi.waitFor(() => expect(closed).toHaveBeenCalledOnce())
})

test('6.2 5.3 a token that expires before the second attempt of a call is renewed for it', async () => {
  await using issuer = await FakeIssuer.start()
  await using a = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] }))
  protect(a, issuer)
  const guard = a.intercept
  let isBusy = true
  a.intercept = (request, response, body) => {
    if (!isBusy || !body.includes('"tools/call"')) return guard(request, response, body)
    isBusy = false
    issuer.expire()
    response.writeHead(429, { 'retry-after': '0' }).end()
    return true
  }
  await using gateway = await startGateway({
    servers: {},
    fakes: new Map(Object.entries({ a })),
    options: { a: { credential: OWN } },
  })
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', { name: 'a__echo', arguments: {} })).not.toHaveProperty('isError')
  expect(a.all('tools/call')).toHaveLength(1)
  expect(isBusy).toBe(false)
})

/** The method of a request, and what it declares under the name of the extension. */
const declaredIn = (body: string): [method: string, settings: unknown] => {
  const { method, params } = JSON.parse(body) as { method: string; params: { _meta: Record<string, { extensions?: JsonMap }> } }
  return [method, params._meta[KEY.capabilities]!.extensions?.[EXTENSION]]
}

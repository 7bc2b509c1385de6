/** A caller's own token is exchanged for one of the server, by the authorization server it is from (RFC 8693; T-07, B235, B250). */
import { expect, test } from 'vitest'
import type { CredentialOptions } from '../../../src/auth/oauth/options.ts'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import { oauthOf } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import { startGateway } from '../../support/gateway.ts'

const AUDIENCE = 'http://mcp.example.com/mcp'

test('each caller reaches the server by a token of its own, and its token for the gateway never does', async () => {
  await using inbound = await startAuthorizationServer()
  await using issuer = await FakeIssuer.start()
  await using server = await FakeDownstream.start(fake.offering('echo'))
  protect(server, issuer)
  const sent: string[] = []
  const guard = server.intercept
  server.intercept = (request, response, body) => {
    sent.push(JSON.stringify(request.headers) + body)
    return guard(request, response, body)
  }
  const credential: CredentialOptions = {
    mode: 'exchange',
    issuer: issuer.url,
    client: { id: 'trunkline', secret: 'secret', privateKey: undefined, algorithm: '' },
    audience: 'orders',
    scopes: ['orders.read'],
    isPrivate: false,
  }
  await using gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', server]]),
    options: { a: { credential } },
    host: { auth: oauthOf(inbound, AUDIENCE) },
  })
  const tokens = await Promise.all(
    (['alice', 'bob'] as const).map((user) => inbound.userToken(user, { resource: AUDIENCE, scope: 'mcp:connect' })),
  )
  for (const { access_token: token } of tokens) {
    await using host = await modernHttp.connect(gateway, { token: () => token })
    const { tools } = await host.call('tools/list')
    expect(tools).toMatchObject([{ name: 'a__echo' }])
    expect(await host.call('tools/call', { name: 'a__echo', arguments: {} })).toMatchObject({ resultType: 'complete' })
  }
  expect(issuer.exchanges.map((params) => params.get('subject_token'))).toEqual(tokens.map((reply) => reply.access_token))
  expect(Object.fromEntries(issuer.exchanges[0])).toMatchObject({ audience: 'orders', scope: 'orders.read' })
  for (const { access_token: token } of tokens) expect(sent.join()).not.toContain(token)
  const used = sent.flatMap((text) => /"authorization":"Bearer (access-[^"]+)"/.exec(text)?.[1] ?? [])
  expect(new Set(used).size).toBe(2)
})

/**
 * A server that wants more scopes than the first sign-in brought, behind a real authorization server that holds clients to what they
 * were registered for (BRIDGING 6.2.3, 6.2.6; B246, B247).
 */
import { decodeJwt } from 'jose'
import { expect, test } from 'vitest'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import type { AuthorizationServer, AuthorizationServerOptions } from '../../support/authorization-server.ts'
import { Browser } from '../../support/browser.ts'
import { PER_USER } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import type { Host } from '../../support/fake-host.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'

const able = { capabilities: { elicitation: { form: {}, url: {} } } }
const CALL = { name: 'a__echo', arguments: {} }

/** Reading takes `mcp:a`, calling `mcp:a:write`. */
const scopeOf = (body: string): string => (body.includes('"tools/call"') ? 'mcp:a:write' : 'mcp:a')

const protectBy = (server: FakeDownstream, { issuer }: AuthorizationServer): void => {
  const { url } = server.address as { url: URL }
  const metadata = `/.well-known/oauth-protected-resource${url.pathname}`
  server.intercept = (request, response, body) => {
    if (request.url?.startsWith('/.well-known/') === true) {
      const document = JSON.stringify({ resource: url.href, authorization_servers: [issuer] })
      response.writeHead(request.url === metadata ? 200 : 404, { 'content-type': 'application/json' }).end(document)
      return true
    }
    const token = request.headers.authorization?.replace(/^Bearer /, '')
    const granted = token === undefined ? undefined : String(decodeJwt(token)['scope'])
    const wanted = scopeOf(body)
    if (granted?.split(' ').includes(wanted) === true) return false
    const error = granted === undefined ? '' : 'error="insufficient_scope", '
    response
      .writeHead(granted === undefined ? 401 : 403, {
        'www-authenticate': `Bearer ${error}scope="${wanted}", resource_metadata="${url.origin}${metadata}"`,
      })
      .end()
    return true
  }
}

const scene = async (options: AuthorizationServerOptions = {}) => {
  const issuer = await startAuthorizationServer(options)
  const server = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] }))
  protectBy(server, issuer)
  const gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', server]]),
    options: { a: { credential: PER_USER } },
  })
  return {
    gateway,
    registrations: () => issuer.requests.entries.filter((entry) => entry === 'POST /reg').length,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}

/** The person opens the link that a call ended with, and the call goes on; resolves with the page that the browser ends on. */
const signIn = async (host: Host, asked: JsonMap, call: JsonMap): Promise<{ page: string; result: JsonMap }> => {
  const { 'sign-in': question } = asked['inputRequests'] as Record<string, { params: { url: string } }>
  const { text } = await new Browser().signIn(question!.params.url)
  const retry = { requestState: asked['requestState'], inputResponses: { 'sign-in': { action: 'accept' } } }
  return { page: text, result: await host.call('tools/call', { ...call, ...retry }) }
}

test('B247 a client that registered itself steps up, with the one registration it made', async () => {
  await using stage = await scene()
  await using host = await modernHttp.connect(stage.gateway, able)
  const first = await signIn(host, await host.call('tools/call', { name: 'a__sign_in' }), { name: 'a__sign_in' })
  expect(first.page).toContain('Signed in to A')
  const asked = await host.call('tools/call', CALL)
  expect(asked).toMatchObject({ resultType: 'input_required' })
  const second = await signIn(host, asked, CALL)
  expect(second.page).toContain('Signed in to A')
  expect(second.result).toMatchObject({ resultType: 'complete' })
  expect(second.result).not.toHaveProperty('isError', true)
  expect(stage.registrations()).toBe(1)
})

test('B246 B247 a server that binds its clients to scopes is registered with again, for all that is wanted', async () => {
  await using stage = await scene({ clientScope: 'openid offline_access mcp:a' })
  await using host = await modernHttp.connect(stage.gateway, able)
  await signIn(host, await host.call('tools/call', { name: 'a__sign_in' }), { name: 'a__sign_in' })
  expect(stage.registrations()).toBe(1)
  const second = await signIn(host, await host.call('tools/call', CALL), CALL)
  expect(second.page).toContain('Signed in to A')
  expect(second.result).toMatchObject({ resultType: 'complete' })
  expect(second.result).not.toHaveProperty('isError', true)
  expect(stage.registrations()).toBe(2)
})

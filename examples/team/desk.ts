/**
 * A server on the official SDK that knows its callers: it takes tokens of the team's authorization server that were issued for it, and
 * nothing else. It keeps the desks that each person has booked.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { createRemoteJWKSet, jwtVerify } from 'jose'

export interface Desk extends AsyncDisposable {
  readonly url: string
  /** `Authorization` of every request so far. */
  readonly came: readonly (string | undefined)[]
}

const METADATA = '/.well-known/oauth-protected-resource/mcp'
const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] })

/** Listens on a free port of 127.0.0.1. */
export const startDesk = async (issuer: string): Promise<Desk> => {
  const booked = new Map<string, number>()
  const handler = createMcpHandler(({ authInfo }) => {
    const who = authInfo?.clientId ?? 'nobody'
    const server = new McpServer({ name: 'desk', version: '1.0.0' }, { capabilities: { tools: {} } })
    const annotations = { readOnlyHint: true }
    server.registerTool('who_am_i', { description: 'Who is calling', annotations }, () => text(`you are ${who}`))
    server.registerTool('book', { description: 'Books one more desk for whoever is calling' }, () => {
      booked.set(who, (booked.get(who) ?? 0) + 1)
      return text(`${who} has ${booked.get(who)}`)
    })
    return server
  })
  const handle = toNodeHandler(handler)
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  const came: (string | undefined)[] = []
  const server = createServer((request, response) => {
    const url = urlOf(server)
    if (request.url === METADATA) {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      return response.end(JSON.stringify({ resource: url, authorization_servers: [issuer], scopes_supported: ['mcp:desk'] }))
    }
    const { authorization } = request.headers
    came.push(authorization)
    const token = authorization?.replace(/^Bearer /, '') ?? ''
    return jwtVerify(token, keys, { issuer, audience: url }).then(
      ({ payload }) =>
        handle(
          Object.assign(request, {
            method: request.method ?? '',
            url: request.url ?? '',
            auth: { token, clientId: payload.sub ?? '', scopes: [] },
          }),
          response,
        ),
      () => response.writeHead(401, { 'WWW-Authenticate': `Bearer resource_metadata="${new URL(METADATA, url).href}"` }).end(),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: urlOf(server),
    came,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`

/** The endpoints at which hosts see one server alone: `/servers/<key>/mcp`, and `/servers/<key>/sse` with `/servers/<key>/messages`. */

/** What is spoken at an endpoint: Streamable HTTP, the stream of HTTP+SSE, or what is posted beside that stream. */
export type EndpointKind = 'mcp' | 'sse' | 'messages'

const SERVER_ENDPOINT = /^\/servers\/([a-z][a-z0-9-]{0,19})\/(mcp|sse|messages)$/

/** The key in such a path, whether there is a server with it or not; `undefined`: it is no such path, or one of another kind. */
export const serverKeyAt = (path: string, kind?: EndpointKind): string | undefined => {
  const [, key, found] = SERVER_ENDPOINT.exec(path) ?? []
  return kind === undefined || kind === found ? key : undefined
}

/** Where hosts post beside the stream at a path: below it is the name of a toolset, which may hold any word. */
export const messagesBeside = (path: string): string => path.replace(/^(\/servers\/[^/]+)?\/sse(?=\/|$)/, '$1/messages')

/** The stream beside which a path is posted to; every other path is returned as it is. */
export const streamBeside = (path: string): string => path.replace(/^(\/servers\/[^/]+)?\/messages(?=\/|$)/, '$1/sse')

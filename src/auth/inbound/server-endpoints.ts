/** The endpoints of a single server: `/servers/<key>/mcp`, and `/servers/<key>/sse` with `/servers/<key>/messages`. */

/** The transport of an endpoint: Streamable HTTP, the stream of HTTP+SSE, or the messages posted for that stream. */
export type EndpointKind = 'mcp' | 'sse' | 'messages'

const SERVER_ENDPOINT = /^\/servers\/([a-z][a-z0-9-]{0,19})\/(mcp|sse|messages)$/

/** Returns the server key in a path, whether or not the server exists; `undefined`: another path, or another kind. */
export const serverKeyAt = (path: string, kind?: EndpointKind): string | undefined => {
  const [, key, found] = SERVER_ENDPOINT.exec(path) ?? []
  return kind === undefined || kind === found ? key : undefined
}

/** Returns the path for messages of the stream at a path. Only the leading part is replaced, since a toolset may be named `sse`. */
export const messagesBeside = (path: string): string => path.replace(/^(\/servers\/[^/]+)?\/sse(?=\/|$)/, '$1/messages')

/** Returns the path of the stream for a messages path; any other path unchanged. */
export const streamBeside = (path: string): string => path.replace(/^(\/servers\/[^/]+)?\/messages(?=\/|$)/, '$1/sse')

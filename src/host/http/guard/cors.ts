/** CORS for listed origins only (T-02). */
import { HEADER_NAME } from '../../../wire/headers/header-value.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'

const ALLOWED_HEADERS =
  'Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID, Mcp-Method, Mcp-Name, ' +
  'traceparent, tracestate, baggage'
const EXPOSED_HEADERS = 'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After'
/** Seconds; the longest time for which a browser caches a preflight. */
const PREFLIGHT_MAX_AGE = '7200'

/** Adds the CORS headers to the answer of a request, so that pages of this origin may read it. */
export const allowOrigin = (request: HttpRequest, origin: string): void => {
  const requested = request.header('access-control-request-headers') ?? ''
  const params = requested
    .split(',')
    .map((name) => name.trim())
    .filter((name) => /^mcp-param-./i.test(name) && HEADER_NAME.test(name))
  request.addHeaders({
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Methods': 'GET, POST, DELETE',
    'Access-Control-Allow-Headers': [ALLOWED_HEADERS, ...params].join(', '),
    'Access-Control-Expose-Headers': EXPOSED_HEADERS,
    ...(request.method === 'OPTIONS' && { 'Access-Control-Max-Age': PREFLIGHT_MAX_AGE }),
    Vary: 'Origin',
  })
}

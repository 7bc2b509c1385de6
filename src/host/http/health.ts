/** `/healthz` and `/readyz`, which need no credential and answer any `Host` (decision 0020). */
import type { HttpRequest } from '../../transport/http1/server/request/http-request.ts'
import type { Readiness } from './readiness.ts'

const PLAIN_TEXT = { 'Content-Type': 'text/plain' }

/** Besides the two paths, `OPTIONS /`: what HAProxy sends where its `option httpchk` names nothing. A preflight has an `Origin`. */
export const isHealthCheck = (request: HttpRequest): boolean =>
  request.path === '/readyz' ||
  request.path === '/healthz' ||
  (request.path === '/' && request.method === 'OPTIONS' && request.header('origin') === undefined)

/** Of a health check. */
export const answerHealth = (request: HttpRequest, readiness: Readiness): void => {
  if (request.path === '/healthz') request.reply(200, PLAIN_TEXT, [Buffer.from('ok\n')])
  else if (readiness.probe()) request.reply(200, PLAIN_TEXT, [Buffer.from('ready\n')])
  else request.reply(503, PLAIN_TEXT, [Buffer.from('stopping\n')])
}

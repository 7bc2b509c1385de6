/**
 * The first check of every request: `Host` and `Origin` (T-01). A refusal is answered, logged and reported to the audit log. Its text names
 * the option that would allow the value, since behind a reverse proxy that option is usually missing.
 *
 * `/healthz` and `/readyz` accept any `Host` (decision 0020), because health checks of proxies send none, or their own.
 */
import { Throttle } from '../../../time/throttle.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { refusalMessage } from '../../../wire/message/message.ts'
import { JSON_TYPE } from '../../response/exchange.ts'
import { reportRefused } from '../../denials.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { isAllowedHost, isAllowedOrigin } from './origins.ts'
import type { OriginRules } from './origins.ts'

/** At most one log line in this time; it counts the refusals since the last one. */
const LOG_EVERY_MS = 10_000
/** Characters of a header shown in texts. */
const MAX_SHOWN = 255

interface Refused {
  readonly header: 'Host' | 'Origin'
  readonly value: string | undefined
  readonly text: string
}

export class OriginGuard {
  readonly #context: Pick<ListenerContext, 'log' | 'denied'>
  readonly #throttle: Throttle

  constructor(context: Pick<ListenerContext, 'log' | 'denied'>, clock?: () => number) {
    this.#context = context
    this.#throttle = new Throttle(LOG_EVERY_MS, clock)
  }

  /** True: the request was answered 403. `checksHost`: it arrived at a loopback address and is not a health check. */
  refuses(request: HttpRequest, rules: OriginRules, checksHost: boolean): boolean {
    const refused = findRefused(request, rules, checksHost)
    if (refused === undefined) return false
    this.#log(refused, request.path)
    reportRefused(this.#context, request, 'origin', 403, { detail: refused.text })
    request.reply(403, JSON_TYPE, refusalMessage(undefined, -32600, refused.text))
    return true
  }

  #log({ header, value, text }: Refused, path: string): void {
    const count = this.#throttle.due()
    if (count !== undefined) this.#context.log.warn({ [header.toLowerCase()]: value, path, count }, `refused with 403: ${text}`)
  }
}

const findRefused = (request: HttpRequest, rules: OriginRules, checksHost: boolean): Refused | undefined => {
  const host = request.header('host')?.slice(0, MAX_SHOWN)
  if (request.count('host') > 1) return { header: 'Host', value: host, text: 'more than one Host header' }
  if (checksHost && !isAllowedHost(request.header('host'), rules)) {
    const what = host === undefined ? 'a request without a Host header' : `Host ${JSON.stringify(host)}`
    const remedy = 'list the names under which a reverse proxy passes requests on in listen.http.allowed_hosts'
    return { header: 'Host', value: host, text: `${what} is not accepted on a loopback address: ${remedy}` }
  }
  const origin = request.header('origin')
  if (isAllowedOrigin(origin, rules)) return undefined
  const value = origin?.slice(0, MAX_SHOWN)
  const text = `Origin ${JSON.stringify(value)} is not accepted: list the origins of web pages in listen.http.allowed_origins`
  return { header: 'Origin', value, text }
}

/** Maps an HTTP status of a server to the failure of the request (BRIDGING 7.2). */
import type { IncomingHttpHeaders } from 'node:http'
import { firstWords } from '../../../values/cut-text.ts'
import { memberOf, parseJsonObject } from '../../../values/json-object.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { cleanLabel } from '../../../wire/protocol/label.ts'
import type { FailureFacts, FailureKind } from '../../../wire/message/failure.ts'

export interface HttpHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

const KINDS: Readonly<Record<number, FailureKind>> = {
  401: 'auth_required',
  403: 'forbidden',
  404: 'not_found',
  405: 'not_found',
  410: 'not_found',
  413: 'too_large',
  429: 'rate_limited',
  431: 'too_large',
}
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504])

/** Whether a response without our id, in the body of this status, counts as the response to our request: it says more than the status. */
export const bodyMayAnswer = ({ status }: HttpHead): boolean => status >= 400 && status !== 403 && !RETRYABLE.has(status)

/** Error texts of servers that have no session of an earlier process, such as the SDKs' examples. */
const NO_SESSION = /\bsession(?:_?id)?\b|\bserver not initialized\b/i

/** A lost session is a 404; many servers answer 400 instead, with an error that belongs to no request, or with a text (Python SDK). */
const isSessionLost = (status: number, body: Buffer): boolean =>
  status === 404 || (status === 400 && body.length <= MAX_READ && NO_SESSION.test(refusalIn(body.toString())))

/** The text of an error that belongs to no request; empty for any other body. A page is not read: its words may mean anything. */
const refusalIn = (body: string): string => {
  const json = parseJsonObject(body)
  if (json === undefined) return body.length > MAX_QUOTED || body.includes('<') ? '' : body
  const { id, error } = json
  const message = typeof error === 'string' ? error : memberOf(error, 'message')
  return (id ?? null) === null && typeof message === 'string' ? message : ''
}

/**
 * Whether the status decides, regardless of any response in the body: sign-in, scopes, rate limits, a lost session.
 * `session`: the request carried a session id.
 */
export const statusDecides = (head: HttpHead, session: boolean, body: Buffer): boolean =>
  head.status === 401 || head.status === 429 || (session && isSessionLost(head.status, body)) || needsScope(head)

/**
 * The failure of a request without a JSON-RPC response. `now`: wall-clock milliseconds. `body` is quoted: it is mostly the error page of a
 * proxy, with more details than the status.
 */
export const failureOfStatus = (head: HttpHead, session: boolean, now: number, body: Buffer = NOTHING): Failure => {
  const { status, headers } = head
  const retryAfterMs = readRetryAfter(headers['retry-after'], now)
  const kind: FailureKind = needsScope(head)
    ? 'scope_required'
    : session && isSessionLost(status, body)
      ? 'session_expired'
      : status >= 500
        ? 'downstream_error'
        : (KINDS[status] ?? 'bad_response')
  // 303 refers to the result of an executed request.
  const executed = status < 300 || status === 303 || status >= 500 ? 'unknown' : 'no'
  const retryable = RETRYABLE.has(status)
  const challenge = status === 401 || status === 403 ? headers['www-authenticate'] : undefined
  const facts: FailureFacts = { executed, retryable, status, ...(challenge !== undefined && { challenge }) }
  const text = `the server answered HTTP ${status}${quoteOf(body)}`
  return new Failure(kind, text, retryAfterMs === undefined ? facts : { ...facts, retryAfterMs })
}

const NOTHING = Buffer.alloc(0)
/** Maximum bytes of a body that are read, and maximum characters of its text that are quoted. */
const MAX_READ = 16 * 1024
const MAX_QUOTED = 200
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: ' ', '#39': "'", '#x27': "'" }

/** `: "text"` of a page without its markup, or nothing. */
const quoteOf = (body: Buffer): string => {
  const text = withoutHidden(body.toString('utf8', 0, MAX_READ))
    // Without `<` in a tag, so that each byte is looked at once (T-27).
    .replace(/<[a-z!/?][^<>]*>/gi, ' ')
    .replace(/&([a-z]+|#39|#x27);/gi, (entity, name: string) => ENTITIES[name.toLowerCase()] ?? entity)
    .replace(/\s+/g, ' ')
  const label = cleanLabel(text).trim()
  if (label === '') return ''
  const quoted = firstWords(label, MAX_QUOTED)
  return `: "${quoted}${quoted === label ? '' : '…'}"`
}

/** The beginnings of page parts that are not shown. */
const HIDDEN = /<(script|style|head|title)\b|<!--/gi

/** A page without the parts that are not shown. A part without an end is kept. */
const withoutHidden = (page: string): string => {
  let shown = ''
  let at = 0
  const endless = new Set<string>()
  for (const { index, 1: name = '' } of page.matchAll(HIDDEN)) {
    const tag = name.toLowerCase()
    if (index < at || endless.has(tag)) continue
    const end = tag === '' ? /-->/g : new RegExp(`</${tag}\\s*>`, 'gi')
    end.lastIndex = index
    if (end.exec(page) === null) endless.add(tag)
    else {
      shown += `${page.slice(at, index)} `
      at = end.lastIndex
    }
  }
  return shown + page.slice(at)
}

const needsScope = ({ status, headers }: HttpHead): boolean =>
  status === 403 && /\berror="?insufficient_scope\b/i.test(headers['www-authenticate'] ?? '')

/** `Retry-After` in milliseconds from `now`: seconds or a date ([RFC 9110] 10.2.3). */
export const readRetryAfter = (value: string | undefined, now: number): number | undefined => {
  if (value === undefined) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

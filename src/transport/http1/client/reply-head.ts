/** The head of a server's answer, as every HTTP client tells it. */
import type { IncomingHttpHeaders } from 'node:http'
import type { HttpHead } from './http-failure.ts'

/** Answers with the same head may share one object. */
export interface ReplyHead extends HttpHead {
  readonly form: 'json' | 'sse' | 'other'
  /** Bytes of the body, where `Content-Length` says it; else 0. */
  readonly length: number
  /** `Content-Encoding`, where there is one beside `identity`. */
  readonly encoding?: string | undefined
}

/** A head of which all that is known are its headers. */
export const replyHead = (status: number, headers: IncomingHttpHeaders): ReplyHead => ({
  status,
  headers,
  form: formOf(headers['content-type']),
  length: Number(headers['content-length'] ?? 0),
  encoding: encodingOf(headers['content-encoding']),
})

/** What a `Content-Encoding` makes of a body; `undefined`: nothing. */
export const encodingOf = (header: string | undefined): string | undefined =>
  header === undefined || header === '' || header.toLowerCase() === 'identity' ? undefined : header

/** What a `Content-Type` makes of a body. */
export const formOf = (contentType: string | undefined): ReplyHead['form'] => {
  if (contentType === 'application/json') return 'json'
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === 'text/event-stream') return 'sse'
  // The name that JSON-RPC over HTTP proposed for it (BRIDGING 3.22).
  if (type === 'application/json-rpc') return 'json'
  return type === 'application/json' || (type.startsWith('application/') && type.endsWith('+json')) ? 'json' : 'other'
}

/** The head of a server's response, in the form of every HTTP client. */
import type { IncomingHttpHeaders } from 'node:http'
import type { HttpHead } from './http-failure.ts'

/** Responses with the same head may share one object. */
export interface ReplyHead extends HttpHead {
  readonly form: 'json' | 'sse' | 'other'
  /** The value of `Content-Length`, or 0 without one. */
  readonly length: number
  /** `Content-Encoding`, unless it is absent or `identity`. */
  readonly encoding?: string | undefined
}

/** Builds a head from status and headers. */
export const replyHead = (status: number, headers: IncomingHttpHeaders): ReplyHead => ({
  status,
  headers,
  form: formOf(headers['content-type']),
  length: Number(headers['content-length'] ?? 0),
  encoding: encodingOf(headers['content-encoding']),
})

/** The encoding of a body by its `Content-Encoding`; `undefined`: not encoded. */
export const encodingOf = (header: string | undefined): string | undefined =>
  header === undefined || header === '' || header.toLowerCase() === 'identity' ? undefined : header

/** The form of a body by its `Content-Type`; of a repeated one, as some proxies send, by the first. */
export const formOf = (contentType: string | undefined): ReplyHead['form'] => {
  if (contentType === 'application/json') return 'json'
  const type = contentType?.split(/[;,]/, 1)[0]?.trim().toLowerCase() ?? ''
  if (type === 'text/event-stream') return 'sse'
  // The type in the proposal of JSON-RPC over HTTP (BRIDGING 3.22).
  if (type === 'application/json-rpc') return 'json'
  return type === 'application/json' || (type.startsWith('application/') && type.endsWith('+json')) ? 'json' : 'other'
}

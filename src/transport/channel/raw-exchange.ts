/** One POST and its response, whatever its HTTP status, for the era detection and the handshake. */
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { HttpReply, Outgoing } from './channel.ts'
import { readIncoming } from './incoming.ts'
import type { McpEndpoint } from './mcp-endpoint.ts'
import type { ReplyHead } from '../http1/client/reply-head.ts'

export interface RawExchange {
  /** The reply with its first JSON-RPC response. Rejects with a `Failure` without an HTTP response, after `timeoutMs`, or after `stop`. */
  readonly answer: Promise<HttpReply>
  stop(): void
}

export const rawExchange = (endpoint: McpEndpoint, message: Outgoing, timeoutMs: number): RawExchange => {
  const { promise, resolve, reject } = Promise.withResolvers<HttpReply>()
  let head: ReplyHead | undefined
  const read = ({ status, headers }: ReplyHead, bytes: Buffer): void => {
    const receive = (message: Envelope): void => {
      if (message.kind === 'response') resolve({ status, headers, message })
    }
    readIncoming(bytes, { receive, refuse: () => undefined })
  }
  const reply = endpoint.post(message, {
    onHead: (from) => {
      head = from
    },
    onEvent: (event) => {
      // Some servers of HTTP+SSE open their stream for a POST, too. They never answer on it.
      if (event.event === 'endpoint') return reject(new Failure('bad_response', 'the server opened a stream of HTTP+SSE'))
      if (head !== undefined && event.data.length > 0) read(head, event.data)
    },
    onEnd: (from, body) => {
      if (body.length > 0) read(from, body)
      resolve({ status: from.status, headers: from.headers, body })
    },
    onError: reject,
  })
  const timeout = new Failure('timeout', `no answer within ${timeoutMs} ms (timeouts.start)`, {
    retryable: true,
    limit: 'timeouts.start',
  })
  const timer = setTimeout(() => reject(timeout), timeoutMs)
  const answer = promise.finally(() => {
    clearTimeout(timer)
    reply.abort()
  })
  return { answer, stop: () => reject(new Failure('lost', 'the channel was closed')) }
}

/** One POST and its response, with the status as a value, for the era probe. */
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Outgoing } from './channel.ts'
import type { HttpHead } from '../http1/client/http-failure.ts'
import { readIncoming } from './incoming.ts'
import type { McpEndpoint } from './mcp-endpoint.ts'
import type { ReplyHead } from '../http1/client/reply-head.ts'

/** `message` is the first response in the body or stream, for any status; other messages are ignored. */
export interface RawAnswer extends HttpHead {
  readonly message?: Envelope
  /** Of an answer that has no response. */
  readonly body?: Buffer
}

/** `answer` rejects with a `Failure` if there is no HTTP answer, none within `timeoutMs`, or `stop` was called. */
export interface RawExchange {
  readonly answer: Promise<RawAnswer>
  stop(): void
}

export const rawExchange = (endpoint: McpEndpoint, message: Outgoing, timeoutMs: number): RawExchange => {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>()
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
      if (head !== undefined && event.data.length > 0) read(head, event.data)
    },
    onEnd: (from, body) => {
      if (body.length > 0) read(from, body)
      resolve({ status: from.status, headers: from.headers, body })
    },
    onError: reject,
  })
  const late = new Failure('timeout', `no answer within ${timeoutMs} ms (timeouts.start)`, {
    retryable: true,
    limit: 'timeouts.start',
  })
  const timer = setTimeout(() => reject(late), timeoutMs)
  const answer = promise.finally(() => {
    clearTimeout(timer)
    reply.abort()
  })
  return { answer, stop: () => reject(new Failure('lost', 'the channel was closed')) }
}

/** Confines an unexpected error to the request, connection or line that caused it (F-31). */
import type { HttpRequest } from '../transport/http1/server/request/http-request.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { refusalMessage } from '../wire/message/message.ts'
import type { Parts } from '../wire/message/payload.ts'
import type { ListenerContext } from './listener-context.ts'

type BoundaryContext = Pick<ListenerContext, 'unexpected'>

/** Runs `work` for one HTTP request. If it throws, the error is logged and the request is ended. */
export const withinRequest = (request: HttpRequest, { unexpected }: BoundaryContext, work: () => void): void => {
  try {
    work()
  } catch (error) {
    unexpected.report(error, { path: request.path }, 'a request failed with an unexpected error')
    request.fail()
  }
}

/** Runs `work` for one message. If it throws, the error is logged, and a request is answered with an error by `send`. */
export const withinMessage = (
  { unexpected }: BoundaryContext,
  message: Pick<Envelope, 'kind' | 'id' | 'method'>,
  work: () => void,
  send?: (parts: Parts) => void,
): void => {
  try {
    work()
  } catch (error) {
    unexpected.report(error, { method: message.method }, 'a message failed with an unexpected error')
    if (message.kind === 'request') send?.(refusalMessage(message.id, -32603, 'internal error'))
  }
}

/** Stands for a message that is not parsed yet: its errors are answered as those of a request. */
export const UNREAD = { kind: 'request', id: undefined, method: '' } as const

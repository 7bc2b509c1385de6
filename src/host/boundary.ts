/** Limits an unexpected error to the request, connection or line that caused it (F-31). */
import type { HttpRequest } from '../transport/http1/server/request/http-request.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { errorMessage, errorObject } from '../wire/message/message.ts'
import type { Parts } from '../wire/message/payload.ts'
import type { ListenerContext } from './listener-context.ts'

type Knows = Pick<ListenerContext, 'unexpected'>

/** Runs `work` for one HTTP request; if it throws, that request is ended and the fault is logged. */
export const withinRequest = (request: HttpRequest, { unexpected }: Knows, work: () => void): void => {
  try {
    work()
  } catch (error) {
    unexpected.report(error, { path: request.path }, 'a request failed with an unexpected error')
    request.fail()
  }
}

/** Runs `work` for one message with a normal response channel; if it throws, a request gets an error. */
export const withinMessage = (
  { unexpected }: Knows,
  message: Pick<Envelope, 'kind' | 'id' | 'method'>,
  work: () => void,
  send?: (parts: Parts) => void,
): void => {
  try {
    work()
  } catch (error) {
    unexpected.report(error, { method: message.method }, 'a message failed with an unexpected error')
    if (message.kind === 'request') send?.(errorMessage(message.id, errorObject(-32603, 'internal error')))
  }
}

/** Bytes before they are parsed: unparsable bytes are answered like a request. */
export const UNREAD = { kind: 'request', id: undefined, method: '' } as const

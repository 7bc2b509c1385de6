/** The answer to a request of ours, of either era: its result, or the server's own error thrown. */
import { ServerError } from '../../rpc/call.ts'
import { isInteger } from '../../values/json-object.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Payload } from '../../wire/message/payload.ts'

/** The result of a response; throws the server's own error as `ServerError`, and `Failure` for an invalid response. */
export const resultOf = (message: Envelope): Payload => {
  if (message.result !== undefined) return message.result
  const error = message.error
  const code = error?.value('code')
  const text = error?.text('message')
  if (error === undefined || !isInteger(code) || text === undefined)
    throw new Failure('bad_response', 'an error without an integer code and a message')
  throw new ServerError(code, text, error, { status: message.status })
}

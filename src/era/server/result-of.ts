/** Reads the response to a request of the gateway, of either era. */
import { ServerError } from '../../rpc/call.ts'
import { isInteger } from '../../values/json-object.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Payload } from '../../wire/message/payload.ts'

/** The result of a response. Throws the server's error as `ServerError`, and `Failure` for an invalid response. */
export const resultOf = (message: Envelope): Payload => {
  if (message.result !== undefined) return message.result
  const error = message.error
  const code = error?.value('code')
  const text = error?.text('message')
  if (error === undefined || !isInteger(code) || text === undefined)
    throw new Failure('bad_response', 'an error without an integer code and a message')
  throw new ServerError(code, text, error, { status: message.status })
}

/** Sends a streamed result as the answer to a request. */
import type { CancelSignal } from '../../rpc/cancellation.ts'
import type { Id } from '../../wire/message/envelope.ts'
import { resultHead } from '../../wire/message/message.ts'
import type { StreamedResult } from '../../wire/result/streamed-result.ts'
import type { ProgressExchange } from './progress.ts'

/** `fail` is called where nothing of the answer has left, and for the log where it broke on its way. */
export const passOn = (
  result: StreamedResult,
  id: Id,
  exchange: ProgressExchange,
  signal: CancelSignal,
  fail: (error: unknown) => void,
): void => {
  if (signal.aborted) result.abort()
  else exchange.pass(resultHead(id), result, fail)
}

/** Parses one unit of a server (a body, the data of an event) into messages: one, or those of a batch. */
import { EnvelopeError, numberedId, readServerMessage, splitBatch } from '../../wire/message/envelope.ts'
import type { ScanAhead } from '../../wire/json/scan-ahead.ts'
import type { Envelope, Id } from '../../wire/message/envelope.ts'

/** An unparsable message, and its id if that could be read. */
export interface Unparsable {
  readonly reason: string
  /** The first 200 bytes, as text. */
  readonly sample: string
  readonly id: Id | undefined
}

/** Receives the messages of a channel. */
export interface Recipient {
  receive(message: Envelope): void
  refuse(message: Unparsable): void
}

/** A message begins with it; a batch does not. */
export const OPEN_BRACE = 0x7b

/** Passes each message to `recipient`, in order; servers of 2025-03-26 and before send batches. `ahead`: what was read while it came. */
export const readIncoming = (bytes: Buffer, recipient: Recipient, ahead?: ScanAhead): void => {
  // Only `[` needs the look for a batch: a message begins with a brace.
  if (bytes[0] === OPEN_BRACE) return readOne(bytes, recipient, ahead)
  let batch: Buffer[] | undefined
  try {
    batch = splitBatch(bytes)
  } catch (error) {
    return recipient.refuse(unparsableOf(bytes, error))
  }
  for (const each of batch ?? [bytes]) readOne(each, recipient)
}

const readOne = (bytes: Buffer, recipient: Recipient, ahead?: ScanAhead): void => {
  let message: Envelope
  try {
    message = readServerMessage(bytes, ahead)
  } catch (error) {
    return recipient.refuse(unparsableOf(bytes, error))
  }
  recipient.receive(message)
}

/** An unexpected error affects only the message that caused it (B271). */
const unparsableOf = (bytes: Buffer, error: unknown): Unparsable => {
  if (!(error instanceof EnvelopeError))
    return { reason: `unexpected error: ${String(error)}`, sample: sampleOf(bytes), id: undefined }
  return { reason: error.message, sample: sampleOf(bytes), id: error.id && numberedId(error.id) }
}

/** Enough of a message to recognize it in a log. */
export const sampleOf = (bytes: Buffer): string => bytes.toString('utf8', 0, 200)

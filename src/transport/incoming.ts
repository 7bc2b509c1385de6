/** Bytes that one server sent as one unit (a body, the data of an event) become messages: one, or those of a batch. */
import { EnvelopeError, readServerMessage, splitBatch } from '../wire/envelope.ts'
import type { Envelope, Id } from '../wire/envelope.ts'

/** What was no message, and the id it carried if that could be read. */
export interface Garbage {
  readonly reason: string
  /** The first 200 bytes, as text. */
  readonly sample: string
  readonly id: Id | undefined
}

/** A message begins with it; a batch does not. */
export const OPEN_BRACE = 0x7b

/** Calls `receive` or `refuse` for each message, in order; batches come from servers of 2025-03-26 and before. */
export const readIncoming = (bytes: Buffer, receive: (message: Envelope) => void, refuse: (garbage: Garbage) => void): void => {
  // Only `[` needs the look for a batch: a message begins with a brace.
  const batch = bytes[0] === OPEN_BRACE ? undefined : attempt(() => splitBatch(bytes), bytes, refuse)
  if (batch === 'refused') return
  for (const each of batch ?? [bytes]) {
    const message = attempt(() => readServerMessage(each), each, refuse)
    if (message !== 'refused') receive(message)
  }
}

const attempt = <T>(read: () => T, bytes: Buffer, refuse: (garbage: Garbage) => void): T | 'refused' => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof EnvelopeError)) throw error
    refuse({ reason: error.message, sample: sampleOf(bytes), id: error.id })
    return 'refused'
  }
}

/** Enough of a message to recognize it in a log. */
export const sampleOf = (bytes: Buffer): string => bytes.toString('utf8', 0, 200)

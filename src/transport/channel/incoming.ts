/** Parses what a server sends as one unit (a body, an event, a line) into its message, or the messages of a batch. */
import { OPEN_BRACE } from '../../wire/json/tokens.ts'
import { EnvelopeError, numberedId, readServerMessage, splitBatch } from '../../wire/message/envelope.ts'
import { attempt } from '../../values/attempt.ts'
import { firstWords } from '../../values/cut-text.ts'
import type { ScanAhead } from '../../wire/json/scan-ahead.ts'
import type { Envelope, Id } from '../../wire/message/envelope.ts'
import { lastMember, membersAt } from '../../wire/message/members.ts'
import { readEnds } from '../../wire/message/message-ends.ts'
import type { MessageEnds } from '../../wire/message/message-ends.ts'
import { stringAt } from '../../wire/message/payload.ts'

/** An unparsable message. */
export interface Unparsable {
  readonly reason: string
  /** The first 200 characters. */
  readonly sample: string
  /** The id of the request that it answers, if that could be read. */
  readonly id: Id | undefined
  /** Its own id, if it is a request. */
  readonly requestId: Id | undefined
}

/** Receives the messages of a channel. */
export interface Recipient {
  receive(message: Envelope): void
  refuse(message: Unparsable): void
}

/** Whether the bytes are a single message, not a batch. Decided by the first byte. */
export const isSingle = (bytes: Buffer): boolean => bytes[0] === OPEN_BRACE

/** Passes each message to `recipient`, in order. Servers of 2025-03-26 and before send batches. `ahead`: the scan of a single message. */
export const readIncoming = (bytes: Buffer, recipient: Recipient, ahead?: ScanAhead): void => {
  if (isSingle(bytes)) return readOne(bytes, recipient, ahead)
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
  const sample = sampleOf(bytes)
  if (!(error instanceof EnvelopeError))
    return { reason: `unexpected error: ${String(error)}`, sample, id: undefined, requestId: undefined }
  const { message: reason, id, isCall } = error
  return isCall
    ? { reason, sample, id: undefined, requestId: isJsonRpc(bytes) ? id : undefined }
    : { reason, sample, id: id && numberedId(id), requestId: undefined }
}

/** A line of a log may have a method and an id, too. */
const isJsonRpc = (bytes: Buffer): boolean => {
  const version = attempt(() => lastMember(membersAt(bytes, 0), 'jsonrpc'))
  return version !== undefined && stringAt(bytes, version) === '2.0'
}

/** A message over the limit, as far as it is known. */
interface Oversized {
  readonly kind: MessageEnds['kind']
  /** The id of the request that it answers, if that could be read. */
  readonly id: Id | undefined
  /** How it is reported; `undefined`: with another part. */
  readonly report: Unparsable | undefined
}

/** Reads a message over the limit: once with its beginning, and then also with its end. It is reported once. */
export const readOversized = (reason: string, head: Buffer, tail?: Buffer): Oversized => {
  const { kind, id } = readEnds(head, tail)
  const isCall = kind === 'call'
  // A request is refused by its id, which may be at its end.
  const isReported = isCall === (tail !== undefined)
  return {
    kind,
    id: kind === 'response' && id !== undefined ? numberedId(id) : undefined,
    report: isReported ? { reason, sample: sampleOf(head), id: undefined, requestId: isCall ? id : undefined } : undefined,
  }
}

const SAMPLE_LENGTH = 200

/** The beginning of a message, to recognize it in a log. */
export const sampleOf = (bytes: Buffer): string => firstWords(bytes.toString('utf8', 0, 4 * SAMPLE_LENGTH), SAMPLE_LENGTH)

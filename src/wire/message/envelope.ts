/**
 * Scans a message once: its kind, id and method, and the positions of params, result and error.
 *
 * The scan checks the JSON and the limits, refuses deciding keys (`deciding-keys.ts`) that are repeated or in another case, and leaves
 * everything else as spans of the received bytes. `null` counts as absent, since many libraries write it for an absent member
 * (BRIDGING 3.22, B282).
 */
import { isUtf8 } from 'node:buffer'
import { intoBlocks } from './content-blocks.ts'
import {
  ENVELOPE_KEYS,
  ERROR_KEYS,
  META_KEYS,
  PARAMS_KEYS,
  QUESTION_KEYS,
  REF_KEYS,
  RESULT_KEYS,
} from '../protocol/deciding-keys.ts'
import { lastMember, membersAt } from './members.ts'
import { readEnds } from './message-ends.ts'
import { Payload, stringAt } from './payload.ts'
import { Scanner } from '../json/scan.ts'
import type { ScanAhead } from '../json/scan-ahead.ts'
import { ScanError } from '../json/scan-error.ts'
import type { Into, Member, ScanLimits, Span } from '../json/scan.ts'
import { NULL, OPEN_BRACE, OPEN_BRACKET, QUOTE, afterSpace, decodeString } from '../json/tokens.ts'
import { attempt } from '../../values/attempt.ts'

/**
 * A JSON-RPC id as received JSON text: `"1"` with its quotes is not `1`. It is echoed unchanged. To compare ids of a peer, or to use
 * them as keys, call `idKey`.
 */
export type Id = string

/**
 * Returns the same text for every spelling of an id (B269): a peer may write `"a\/b"` in its request and `"a/b"` in its cancellation.
 * Numbers stay unchanged.
 */
export const idKey = (id: Id): Id => (id.includes('\\') ? JSON.stringify(JSON.parse(id)) : id)

/** The progress token of a request, as JSON text; `undefined` also for `null`. */
export const progressTokenOf = (params: Payload | undefined): Id | undefined => {
  const raw = params?.object('_meta')?.raw('progressToken')
  return raw?.[0] === NULL ? undefined : raw?.toString()
}

export interface Envelope {
  /** The received message. */
  readonly bytes: Buffer
  readonly kind: 'request' | 'notification' | 'response'
  /** The id of a request or response; `undefined` for an error response to an unparsable message. */
  readonly id: Id | undefined
  /** Empty for a response. */
  readonly method: string
  /** `params` if it is an object. */
  readonly params: Payload | undefined
  /** `result` if it is an object: MCP has no other results. */
  readonly result: Payload | undefined
  readonly error: Payload | undefined
  /** The HTTP status of a response, if it is an error status. */
  readonly status?: number
}

/** A message that was refused. `id`: that of the message, if it could be read; the answer echoes it. */
export class EnvelopeError extends Error {
  readonly code: -32700 | -32600
  readonly id: Id | undefined
  /** Whether the message has a method, so that its id is one of its sender and not of a request that it answers. */
  readonly isCall: boolean
  /** The option of the exceeded limit. */
  readonly limit: string | undefined
  constructor(
    code: -32700 | -32600,
    message: string,
    id: Id | undefined,
    facts: { isCall?: boolean; limit?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.isCall = facts.isCall === true
    this.limit = facts.limit
    this.name = 'EnvelopeError'
    this.code = code
    this.id = id
  }
}

/** Reads one message of a host, and checks everything. Throws `EnvelopeError`. */
export const readHostMessage = (bytes: Buffer, limits: ScanLimits): Envelope => read(withoutBom(bytes), { limits, strict: true })

/**
 * Reads one message of a configured server, and checks its structure only. The id of a response becomes the number that was sent, even
 * if the server wrote it as text or with a fraction (B288). `ahead`: the scan of `readAhead`. Throws `EnvelopeError`.
 */
export const readServerMessage = (bytes: Buffer, ahead?: ScanAhead): Envelope => {
  ahead?.complete()
  const message = read(withoutBom(bytes), { strict: false, ahead })
  if (message.kind !== 'response' || message.id === undefined) return message
  const id = numberedId(message.id)
  return id === message.id ? message : { ...message, id }
}

/**
 * Scans a further part of a server's message while it is being received, so that less is left to scan once it is complete. Throws nothing
 * for an invalid message: that is found later.
 */
export const readAhead = (received: Buffer, ahead: ScanAhead): void => {
  if (received[0] !== OPEN_BRACE) return
  ahead.step(received.length, () => new Scanner(received, { strict: false, ahead }).members(intoMessage, ENVELOPE_KEYS))
}

/** An id or token that the gateway assigned, in the form in which the gateway wrote it. Any other text stays unchanged. */
export const numberedId = (id: Id): Id => {
  if (isDigits(id)) return id
  const number = NUMBER_AS_TEXT.test(id) ? Number(id.startsWith('"') ? id.slice(1, -1) : id) : Number.NaN
  return Number.isSafeInteger(number) && number >= 0 ? String(number) : id
}

/** `"41"`, `41.0`, `4.1e1`. */
const NUMBER_AS_TEXT = /^(?:"(?:0|[1-9]\d{0,14})"|\d{1,15}(?:\.\d{1,15})?(?:[eE]\+?\d{1,2})?)$/

const isDigits = (id: Id): boolean => {
  for (let at = 0; at < id.length; at++) if (id.charCodeAt(at) < 0x30 || id.charCodeAt(at) > 0x39) return false
  return true
}

/** Removes a byte order mark, which a parser may ignore ([RFC 8259 8.1]). */
const withoutBom = (bytes: Buffer): Buffer =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes

/** Whether the first byte is that of a JSON array, which can only be a batch. */
export const isBatch = (bytes: Buffer): boolean => {
  const text = withoutBom(bytes)
  return text[afterSpace(text, 0)] === OPEN_BRACKET
}

/** Messages in a batch of a server, which otherwise has no limits: each is read on its own, which takes long for very many (B256). */
const MAX_SERVER_BATCH = 1_000

/**
 * The messages of a JSON-RPC batch ([2025-03-26 basic/index]); `undefined` for a single message. `limits`: absent for a server. Throws
 * `EnvelopeError`.
 */
export const splitBatch = (bytes: Buffer, limits?: ScanLimits): Buffer[] | undefined => {
  if (!isBatch(bytes)) return undefined
  const text = withoutBom(bytes)
  const scanner = new Scanner(text, limits === undefined ? { strict: false } : { limits })
  try {
    const spans = scanner.elements(limits === undefined ? MAX_SERVER_BATCH : Infinity)
    scanner.expectEnd()
    return spans.map((span) => text.subarray(span.start, span.end))
  } catch (error) {
    throw asEnvelopeError(error)
  }
}

const read = (bytes: Buffer, options: { limits?: ScanLimits; strict: boolean; ahead?: ScanAhead | undefined }): Envelope => {
  if (!isUtf8(bytes)) throw new EnvelopeError(-32700, 'the message is not UTF-8', undefined)
  try {
    const scanner = new Scanner(bytes, options)
    const first = scanner.peek()
    if (first === OPEN_BRACKET) throw new EnvelopeError(-32600, 'batches are not part of this revision', undefined)
    if (first !== OPEN_BRACE) refuseScalar(scanner)
    const members = scanner.members(intoMessage, ENVELOPE_KEYS)
    scanner.expectEnd()
    return classify(bytes, members)
  } catch (error) {
    throw asEnvelopeError(error, bytes)
  }
}

const intoMessage: Into = (key, scanner) => {
  if (key === 'params') return scanner.object(intoParams, PARAMS_KEYS)
  if (key === 'result') return scanner.object(intoResult, RESULT_KEYS)
  return key === 'error' ? scanner.object(undefined, ERROR_KEYS) : undefined
}
const intoParams: Into = (key, scanner) => {
  if (key === '_meta') return scanner.object(undefined, META_KEYS)
  return key === 'ref' ? scanner.object(undefined, REF_KEYS) : undefined
}
const intoResult: Into = (key, scanner, keyStart) =>
  key === '_meta' ? scanner.object(undefined, META_KEYS) : intoBlocks(key, scanner, keyStart)

/**
 * Checks a question within a result of a server: like those of a request, the keys of a question and of its params that decide may not be
 * repeated or in another case (B270). Throws `ScanError`.
 */
export const checkQuestion = (bytes: Buffer, { start }: Span): void => {
  new Scanner(bytes, { start, strict: false }).object(intoQuestion, QUESTION_KEYS)
}
const intoQuestion: Into = (key, scanner) => (key === 'params' ? scanner.object(intoParams, PARAMS_KEYS) : undefined)

/** Throws: JSON that is no object has another error code than text that is no JSON ([JSON-RPC 2.0, 5.1]). */
const refuseScalar = (scanner: Scanner): never => {
  scanner.skip()
  scanner.expectEnd()
  throw new EnvelopeError(-32600, 'a message is a JSON object', undefined)
}

const classify = (bytes: Buffer, members: readonly Member[]): Envelope => {
  let version: Member | undefined
  let idMember: Member | undefined
  let methodMember: Member | undefined
  let params: Member | undefined
  let result: Member | undefined
  let error: Member | undefined
  for (const member of members) {
    const { key } = member
    if (key === 'jsonrpc') version = member
    else if (key === 'id') idMember = member
    else if (bytes[member.start] === NULL) continue
    else if (key === 'method') methodMember = member
    else if (key === 'params') params = member
    else if (key === 'result') result = member
    else if (key === 'error') error = member
  }
  const id = idMember && idText(bytes, idMember)
  const isCall = methodMember !== undefined
  const refuse = (message: string): EnvelopeError => new EnvelopeError(-32600, message, id, { isCall })
  if (version === undefined || stringAt(bytes, version) !== '2.0') throw refuse('jsonrpc must be "2.0"')
  if (methodMember !== undefined) {
    const method = stringAt(bytes, methodMember)
    if (method === undefined) throw refuse('method must be a string')
    if (result ?? error) throw refuse('a message has either a method or an outcome')
    if (idMember !== undefined && id === undefined) throw refuse('id must be a string or a number')
    const payload = objectOf(bytes, params)
    if (params !== undefined && payload === undefined) throw refuse('params must be an object')
    const kind = id === undefined ? 'notification' : 'request'
    return { bytes, kind, id, method, params: payload, result: undefined, error: undefined }
  }
  if ((result === undefined) === (error === undefined)) throw refuse('a message has a method, a result or an error')
  const outcome = { result: objectOf(bytes, result), error: objectOf(bytes, error) }
  if (outcome.result === undefined && outcome.error === undefined) throw refuse('result and error must be objects')
  if (outcome.result !== undefined && id === undefined) throw refuse('a result needs the id of its request')
  return { bytes, kind: 'response', id, method: '', params: undefined, ...outcome }
}

const objectOf = (bytes: Buffer, member: Member | undefined): Payload | undefined =>
  member?.members && new Payload(bytes, member, member.members)

/** `undefined`: neither a string nor a number. Throws `ScanError` for an invalid escape: ids are compared decoded (`idKey`). */
const idText = (bytes: Buffer, span: Span): Id | undefined => {
  // Cast: a value has at least one byte.
  const first = bytes[span.start]!
  const isString = first === QUOTE
  const isNumber = first === 0x2d || (first >= 0x30 && first <= 0x39)
  if (!isString && !isNumber) return undefined
  const text = bytes.toString('utf8', span.start, span.end)
  if (text.includes('\\')) decodeString(bytes, span.start + 1, span.end - 1)
  return text
}

/** Refused messages up to this size are scanned again for their id. Of larger ones, only beginning and end are read (T-24). */
const MAX_READ_BYTES = 64 * 1024
const END_BYTES = 4 * 1024

/** The id and the kind of a refused message that is valid JSON, for the answer. */
const findId = (bytes: Buffer): { readonly id: Id | undefined; readonly isCall: boolean } | undefined => {
  if (bytes.length > MAX_READ_BYTES) {
    const { kind, id } = readEnds(bytes.subarray(0, END_BYTES), bytes.subarray(-END_BYTES))
    return { id, isCall: kind === 'call' }
  }
  return attempt(() => {
    const members = membersAt(bytes, 0)
    const id = lastMember(members, 'id')
    return { id: id && idText(bytes, id), isCall: lastMember(members, 'method') !== undefined }
  })
}

/** `bytes`: the message, if its id may be read. */
const asEnvelopeError = (error: unknown, bytes?: Buffer): unknown => {
  if (!(error instanceof ScanError)) return error
  const isJson = error.kind !== 'syntax'
  const found = isJson && bytes !== undefined ? findId(bytes) : undefined
  const facts = { isCall: found?.isCall === true, limit: error.limit, cause: error }
  return new EnvelopeError(isJson ? -32600 : -32700, error.message, found?.id, facts)
}

/**
 * One scan over one message: what kind it is, its id, its method, and where params, result and error stand.
 *
 * The scan checks the JSON and the limits, refuses duplicate and escaped keys of the envelope, of `params` and of `_meta`,
 * and leaves everything else as spans of the bytes that came.
 */
import { isUtf8 } from 'node:buffer'
import { readEnds } from './message-ends.ts'
import { Payload, stringAt } from './payload.ts'
import { Scanner } from './scan.ts'
import { ScanError } from './scan-error.ts'
import type { Into, Member, ScanLimits, Span } from './scan.ts'

/**
 * A JSON-RPC id as the JSON text it came in: `"1"` (with quotes) is not `1`. Echoing it is writing it again; two ids are the
 * same if and only if their texts are.
 */
export type Id = string

export interface Envelope {
  /** The message as it came. */
  readonly bytes: Buffer
  readonly kind: 'request' | 'notification' | 'response'
  /** Of a request or response; `undefined` for an error response to something unreadable. */
  readonly id: Id | undefined
  readonly method: string
  /** `params` if it is an object. */
  readonly params: Payload | undefined
  /** `result` if it is an object: MCP knows no other result. */
  readonly result: Payload | undefined
  readonly error: Payload | undefined
}

/** Why a message could not be taken; `id` is echoed when it could be read. */
export class EnvelopeError extends Error {
  readonly code: -32700 | -32600
  readonly id: Id | undefined
  /** The option whose limit it exceeds. */
  readonly limit: string | undefined
  constructor(
    code: -32700 | -32600,
    message: string,
    id: Id | undefined,
    facts: { limit?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.limit = facts.limit
    this.name = 'EnvelopeError'
    this.code = code
    this.id = id
  }
}

const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const EMPTY: readonly Member[] = []

/** Reads one message from a host: everything is checked. Throws `EnvelopeError`. */
export const readHostMessage = (bytes: Buffer, limits: ScanLimits): Envelope =>
  read(bytes, { limits, strict: true }, intoHostMessage)

/** Reads one message from a configured server: its structure is checked, its payload relayed. Throws `EnvelopeError`. */
export const readServerMessage = (bytes: Buffer): Envelope => read(bytes, { strict: false }, intoServerMessage)

/** The messages of a JSON-RPC batch ([2025-03-26 basic/index]), or `undefined` if this is a single message. */
export const splitBatch = (bytes: Buffer, limits?: ScanLimits): Buffer[] | undefined => {
  const scanner = new Scanner(bytes, limits === undefined ? { strict: false } : { limits })
  if (scanner.peek() !== OPEN_BRACKET) return undefined
  try {
    const spans = scanner.elements()
    scanner.expectEnd()
    return spans.map((span) => bytes.subarray(span.start, span.end))
  } catch (error) {
    throw asEnvelopeError(error, undefined)
  }
}

const read = (bytes: Buffer, options: { limits?: ScanLimits; strict: boolean }, into: Into): Envelope => {
  if (!isUtf8(bytes)) throw new EnvelopeError(-32700, 'the message is not UTF-8', undefined)
  const scanner = new Scanner(bytes, options)
  let members = EMPTY
  try {
    const first = scanner.peek()
    if (first === OPEN_BRACKET) throw new EnvelopeError(-32600, 'batches are not part of this revision', undefined)
    if (first !== OPEN_BRACE) refuseScalar(scanner)
    members = scanner.members(into)
    scanner.expectEnd()
  } catch (error) {
    throw asEnvelopeError(error, findId(bytes))
  }
  return classify(bytes, members)
}

const intoMeta: Into = (key, scanner) => (key === '_meta' ? scanner.object() : undefined)
const intoHostMessage: Into = (key, scanner) => (mayHoldObject(key) ? scanner.object(intoMeta) : undefined)
const intoServerMessage: Into = (key, scanner) => (mayHoldObject(key) ? scanner.object() : undefined)
const mayHoldObject = (key: string): boolean => key === 'params' || key === 'result' || key === 'error'

/** JSON, but no message: another mistake than no JSON at all ([JSON-RPC 2.0, 5.1]). */
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
    else if (key === 'method') methodMember = member
    else if (key === 'params') params = member
    else if (key === 'result') result = member
    else if (key === 'error') error = member
  }
  const id = idMember && idText(bytes, idMember)
  const refuse = (message: string): EnvelopeError => new EnvelopeError(-32600, message, id)
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

const idText = (bytes: Buffer, span: Span): Id | undefined => {
  const first = bytes[span.start]
  const isString = first === 0x22
  const isNumber = first === 0x2d || (first >= 0x30 && first <= 0x39)
  return isString || isNumber ? bytes.toString('utf8', span.start, span.end) : undefined
}

/** What is parsed to find the id of a message that is refused: a larger one may be a bomb, and is asked at its ends only (T-24). */
const MAX_PARSED_BYTES = 64 * 1024
const END_BYTES = 4 * 1024

/** The id of a message that is JSON but not acceptable, so that the refusal can carry it. */
const findId = (bytes: Buffer): Id | undefined => {
  if (bytes.length > MAX_PARSED_BYTES) return readEnds(bytes.subarray(0, END_BYTES), bytes.subarray(-END_BYTES)).id
  try {
    const value = JSON.parse(bytes.toString()) as { id?: unknown }
    return typeof value.id === 'string' || typeof value.id === 'number' ? JSON.stringify(value.id) : undefined
  } catch {
    return undefined
  }
}

const asEnvelopeError = (error: unknown, id: Id | undefined): unknown => {
  if (!(error instanceof ScanError)) return error
  return new EnvelopeError(error.kind === 'syntax' ? -32700 : -32600, error.message, id, { limit: error.limit, cause: error })
}

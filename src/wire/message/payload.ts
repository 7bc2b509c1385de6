/**
 * A relayed JSON object: the received bytes with a few changes.
 *
 * `parts()` returns slices of the received bytes with the changes between them, so that numbers, the order of keys and white space
 * arrive unchanged (BRIDGING 2.6). There are three kinds of changes: a new value of a member, a new member in front of the others, and
 * the replacement of a span deeper inside.
 *
 * Cast: `!` at an index that `#indexOf` has found or that is below the length.
 */
import type { DecidingKeys } from '../protocol/deciding-keys.ts'
import { isDeeperThan } from '../json/deep-value.ts'
import { Scanner } from '../json/scan.ts'
import { ScanError } from '../json/scan-error.ts'
import type { Member, Span } from '../json/scan.ts'
import { Splice } from './splice.ts'
import { NULL, OPEN_BRACE, QUOTE, decodeString } from '../json/tokens.ts'
import { keyBytes, wordAt } from '../json/known-words.ts'

/** A message to send, or a part of one: slices of received bytes with pieces of the gateway between them. */
export type Parts = readonly Uint8Array[]

/** An object of a message; `set` and `delete` work on its top-level members. */
export interface JsonObject {
  has(key: string): boolean
  /** Whether the member is missing or `null`, which many libraries write for a missing member (BRIDGING 3.22). */
  isAbsent(key: string): boolean
  /** Adds or replaces a member; `json`: its value as JSON text. */
  set(key: string, json: string | Uint8Array | Parts): void
  /** Adds or replaces a member of the member `outer`, which is created if it is missing or no object. */
  setIn(outer: string, key: string, json: string | Uint8Array): void
  delete(key: string): void
  parts(): Parts
}

const isParts = (value: string | Uint8Array | Parts): value is Parts => Array.isArray(value)
export const toParts = (json: string | Uint8Array | Parts): Parts =>
  typeof json === 'string' ? [Buffer.from(json)] : isParts(json) ? json : [json]

export const byteLength = (parts: Parts): number => {
  let total = 0
  for (const part of parts) total += part.length
  return total
}

/** Joins the parts, in `room` if it is given: memory of exactly their size. A single part is returned as it is. */
export const join = (parts: Parts, room?: Buffer): Buffer => {
  if (parts.length === 1 && room === undefined) return bufferOf(parts[0]!)
  const joined = room ?? Buffer.allocUnsafe(byteLength(parts))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** The bytes as a latin1 string. A socket that writes latin1 text joins it with its head more cheaply than a buffer. */
export const latin1Of = (parts: Parts): string => {
  let text = ''
  for (const part of parts) text += part.length === 1 ? String.fromCharCode(part[0]!) : bufferOf(part).toString('latin1')
  return text
}

const bufferOf = (part: Uint8Array): Buffer =>
  Buffer.isBuffer(part) ? part : Buffer.from(part.buffer, part.byteOffset, part.byteLength)

interface Edit extends Span {
  readonly parts: Parts
}

/** The new value of a member. */
type Made = Parts | Draft
/** The value of a deleted member; compared by identity. */
const CUT: Parts = []
/** Deepest value that `value` parses: parsed values are walked by recursion. */
const MAX_VALUE_LEVELS = 512
/** The index of a missing member. */
const NONE = -1

const COMMA = Buffer.from(',')
const OPEN = Buffer.from('{')
const CLOSE = Buffer.from('}')

export class Payload implements JsonObject {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  readonly members: readonly Member[]
  /** New values by the index of their member. */
  #changed: (Made | undefined)[] | undefined
  /** New members, written in front of the others. */
  #added: Map<string, Made> | undefined
  #edits: Edit[] | undefined
  /** Members that were read as objects, by their index. */
  #nested: (Payload | undefined)[] | undefined

  constructor(bytes: Buffer, span: Span, members: readonly Member[]) {
    this.bytes = bytes
    this.start = span.start
    this.end = span.end
    this.members = members
  }

  /** Reads the object at `start`. `deciding`: keys that it may have once and in one case only. Throws `ScanError`. */
  static at(bytes: Buffer, start = 0, deciding?: DecidingKeys): Payload {
    const scanner = new Scanner(bytes, { start, strict: false })
    scanner.peek()
    const from = scanner.position
    const members = scanner.members(undefined, deciding)
    return new Payload(bytes, { start: from, end: scanner.position }, members)
  }

  /** An object of the gateway itself. */
  static of(value: object): Payload {
    return Payload.at(Buffer.from(JSON.stringify(value)))
  }

  /** The member that a JSON parser uses for `key`: of a repeated key the last one. */
  member(key: string): Member | undefined {
    const index = this.#indexOf(key)
    return index === NONE ? undefined : this.members[index]
  }

  #indexOf(key: string): number {
    const { members } = this
    for (let index = members.length - 1; index >= 0; index--) if (members[index]!.key === key) return index
    return NONE
  }

  has(key: string): boolean {
    const index = this.#indexOf(key)
    return index === NONE ? this.#added?.has(key) === true : this.#changed?.[index] !== CUT
  }

  isAbsent(key: string): boolean {
    const index = this.#indexOf(key)
    if (index === NONE) return !this.has(key)
    const made = this.#changed?.[index]
    return made === CUT || (made === undefined && this.bytes[this.members[index]!.start] === NULL)
  }

  /** The received bytes of the value; `undefined` without this member. */
  raw(key: string): Buffer | undefined {
    const member = this.member(key)
    return member && this.bytes.subarray(member.start, member.end)
  }

  /** The bytes of the value with its own changes; `undefined` without this member. */
  final(key: string): Buffer | undefined {
    const made = this.#made(key)
    if (made === CUT) return undefined
    return made === undefined ? this.raw(key) : join(partsOf(made))
  }

  /** The received value if it is a string, else `undefined`. */
  text(key: string): string | undefined {
    const member = this.member(key)
    return member && stringAt(this.bytes, member)
  }

  /**
   * The parsed received value, for small members of a known shape. Throws `ScanError` for invalid JSON that a lenient scan accepted, and
   * for more than `MAX_VALUE_LEVELS` levels.
   */
  value(key: string): unknown {
    const member = this.member(key)
    if (member === undefined) return undefined
    if (isDeeperThan(this.bytes, member, MAX_VALUE_LEVELS))
      throw new ScanError('limit', `the value of ${JSON.stringify(key)} has more than ${MAX_VALUE_LEVELS} levels`, member.start)
    try {
      return JSON.parse(this.bytes.toString('utf8', member.start, member.end))
    } catch (cause) {
      throw new ScanError('syntax', `the value of ${JSON.stringify(key)} is no JSON`, member.start, { cause })
    }
  }

  /** A received member that is an object, as a payload. Its changes are changes of this payload. */
  object(key: string): Payload | undefined {
    const index = this.#indexOf(key)
    if (index === NONE) return undefined
    const known = this.#nested?.[index]
    if (known !== undefined) return known
    const member = this.members[index]!
    if (this.bytes[member.start] !== OPEN_BRACE) return undefined
    const nested =
      member.members === undefined ? Payload.at(this.bytes, member.start) : new Payload(this.bytes, member, member.members)
    this.#nested ??= places(this.members)
    this.#nested[index] = nested
    return nested
  }

  set(key: string, json: string | Uint8Array | Parts): void {
    this.#put(this.#indexOf(key), key, toParts(json))
  }

  setIn(outer: string, key: string, json: string | Uint8Array): void {
    const made = this.#made(outer)
    const inner = made === undefined ? this.object(outer) : undefined
    if (inner !== undefined) return inner.set(key, json)
    const draft = made instanceof Draft ? made : made === undefined || made === CUT ? new Draft() : Draft.from(made)
    draft.set(key, json)
    this.#put(this.#indexOf(outer), outer, draft)
  }

  delete(key: string): void {
    const index = this.#indexOf(key)
    if (index === NONE) this.#added?.delete(key)
    else this.#put(index, key, CUT)
  }

  /** Replaces a span somewhere inside a value. */
  replace(span: Span, json: string | Uint8Array | Parts): void {
    ;(this.#edits ??= []).push({ start: span.start, end: span.end, parts: toParts(json) })
  }

  /** A payload of the changed bytes, for code that must read the changes. The same object if there are none. */
  settled(): Payload {
    return this.#isUnedited ? this : Payload.at(join(this.parts()))
  }

  /** A payload of the same bytes without the changes. */
  fresh(): Payload {
    return new Payload(this.bytes, this, this.members)
  }

  parts(): Parts {
    if (this.#isUnedited) return [this.bytes.subarray(this.start, this.end)]
    const splice = new Splice(this.bytes)
    this.#write(splice)
    return splice.parts()
  }

  get #isUnedited(): boolean {
    if (this.#changed !== undefined || this.#added !== undefined || this.#edits !== undefined) return false
    if (this.#nested !== undefined)
      for (const nested of this.#nested) if (nested !== undefined && !nested.#isUnedited) return false
    return true
  }

  /** The new value of the member, changed or added. */
  #made(key: string): Made | undefined {
    const index = this.#indexOf(key)
    return index === NONE ? this.#added?.get(key) : this.#changed?.[index]
  }

  #put(index: number, key: string, made: Made): void {
    if (index !== NONE) {
      const changed = (this.#changed ??= places(this.members))
      changed[index] = made
      // Earlier values of a repeated key are removed.
      for (let earlier = index - 1; earlier >= 0; earlier--) if (this.members[earlier]!.key === key) changed[earlier] = CUT
    } else if (made !== CUT) (this.#added ??= new Map()).set(key, made)
  }

  #write(splice: Splice): void {
    const { members } = this
    const changed = this.#changed
    this.#edits?.sort((a, b) => a.start - b.start)
    splice.keep(this.start, this.start + 1)
    this.#writeAdded(splice, changed === undefined ? members.length > 0 : isAnyKept(changed))
    let at = this.start + 1
    let previous = NONE
    for (let index = 0; index < members.length; index++) {
      const made = changed?.[index]
      if (made === CUT) continue
      const member = members[index]!
      // The text between two members is kept; where a member was removed it is one comma.
      if (previous === NONE) at = index === 0 ? at : member.keyStart
      else if (previous !== index - 1) {
        splice.put(COMMA)
        at = member.keyStart
      }
      this.#copy(splice, at, member.start)
      const nested = this.#nested?.[index]
      if (made !== undefined) for (const part of partsOf(made)) splice.put(part)
      else if (nested !== undefined) nested.#write(splice)
      else this.#copy(splice, member.start, member.end)
      at = member.end
      previous = index
    }
    const last = members[members.length - 1]
    this.#copy(splice, last === undefined ? at : last.end, this.end)
  }

  #writeAdded(splice: Splice, more: boolean): void {
    if (this.#added === undefined) return
    let left = this.#added.size
    for (const [key, made] of this.#added) {
      splice.put(keyBytes(key))
      for (const part of partsOf(made)) splice.put(part)
      if (--left > 0 || more) splice.put(COMMA)
    }
  }

  /** Copies the bytes from `from` to `to`, with the replacements inside them. */
  #copy(splice: Splice, from: number, to: number): void {
    if (this.#edits === undefined) return splice.keep(from, to)
    let at = from
    for (const edit of this.#edits) {
      if (edit.start < at || edit.end > to) continue
      splice.keep(at, edit.start)
      for (const part of edit.parts) splice.put(part)
      at = edit.end
    }
    splice.keep(at, to)
  }
}

const isAnyKept = (changed: readonly unknown[]): boolean => {
  for (const made of changed) if (made !== CUT) return true
  return false
}

const partsOf = (made: Made): Parts => (made instanceof Draft ? made.parts() : made)

/** An empty list as long as the members. */
const places = <T>(members: readonly Member[]): (T | undefined)[] => members.map(() => undefined)

/** The text of the JSON string at `span`; `undefined` for any other value. Throws `ScanError` for an invalid escape. */
export const stringAt = (bytes: Buffer, span: Span): string | undefined => {
  if (bytes[span.start] !== QUOTE) return undefined
  return wordAt(bytes, span.start + 1, span.end - 1) ?? decodeString(bytes, span.start + 1, span.end - 1)
}

/** A new object, composed member by member. */
export class Draft implements JsonObject {
  readonly #members = new Map<string, Parts>()

  has(key: string): boolean {
    return this.#members.has(key)
  }

  isAbsent(key: string): boolean {
    return !this.#members.has(key)
  }

  set(key: string, json: string | Uint8Array | Parts): void {
    this.#members.set(key, toParts(json))
  }

  setIn(outer: string, key: string, json: string | Uint8Array): void {
    const inner = this.#members.get(outer)
    const draft = inner === undefined ? new Draft() : Draft.from(inner)
    draft.set(key, json)
    this.set(outer, draft.parts())
  }

  /** A draft with the members of an object that is already text. */
  static from(parts: Parts): Draft {
    const draft = new Draft()
    const payload = Payload.at(join(parts))
    for (const member of payload.members) draft.set(member.key, payload.bytes.subarray(member.start, member.end))
    return draft
  }

  delete(key: string): void {
    this.#members.delete(key)
  }

  parts(): Parts {
    if (this.#members.size === 0) return [Buffer.from('{}')]
    const out: Uint8Array[] = []
    for (const [key, parts] of this.#members) out.push(out.length === 0 ? OPEN : COMMA, keyBytes(key), ...parts)
    out.push(CLOSE)
    return out
  }
}

/**
 * A JSON object on its way through: the bytes it came as, and the few changes it leaves with.
 *
 * `parts()` yields slices of the original bytes with the changes between them, so whatever was not changed leaves exactly as
 * it came: number text, key order, white space (BRIDGING 2.6). Changes are kept as text to put in place of a member, text to
 * put in front, and replacements of spans deeper inside.
 */
import { Scanner } from './scan.ts'
import type { Member, ScanLimits, Span } from './scan.ts'
import { Splice } from './splice.ts'
import { wordAt } from './words.ts'

/** A message to send, or a piece of one: slices of what came, and our own pieces between them. */
export type Parts = readonly Uint8Array[]

/** An object that ends up in a message; `set` and `delete` work on its top-level members. */
export interface JsonObject {
  has(key: string): boolean
  /** Puts a member; `json` is its value as JSON text. */
  set(key: string, json: string | Uint8Array | Parts): void
  /** Puts a member inside the object member `outer`, which is made if it is missing. */
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

export const join = (parts: Parts): Buffer => {
  const only = parts.length === 1 ? parts[0] : undefined
  if (only !== undefined) return bufferOf(only)
  return Buffer.concat(parts)
}

/** The same bytes as a string of one character per byte: cheaper to append to text that is written as latin1 than a buffer is. */
export const latin1Of = (parts: Parts): string => {
  let text = ''
  for (const part of parts) text += bufferOf(part).toString('latin1')
  return text
}

const bufferOf = (part: Uint8Array): Buffer =>
  Buffer.isBuffer(part) ? part : Buffer.from(part.buffer, part.byteOffset, part.byteLength)

interface Edit extends Span {
  readonly parts: Parts
}

const COMMA = Buffer.from(',')
const BACKSLASH = 0x5c
/** Up to here a loop is faster than a native search. */
const SHORT_STRING = 64

export class Payload implements JsonObject {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  readonly members: readonly Member[]
  /** New values of existing members; `undefined`: the member is left out. */
  #changed: Map<Member, Parts | Draft | undefined> | undefined
  /** New members, put in front of the others. */
  #added: Map<string, Parts | Draft> | undefined
  #edits: Edit[] | undefined
  #nested: Map<Member, Payload> | undefined
  /** `_meta`, where the scan has read it on its way. */
  readonly #meta: Payload | undefined

  constructor(bytes: Buffer, span: Span, members: readonly Member[], meta?: Payload) {
    this.bytes = bytes
    this.start = span.start
    this.end = span.end
    this.members = members
    this.#meta = meta
  }

  /** Reads the object that starts at `start`; throws `ScanError`. */
  static at(bytes: Buffer, start = 0, limits?: ScanLimits): Payload {
    const scanner = new Scanner(bytes, limits === undefined ? { start, strict: false } : { start, limits })
    scanner.peek()
    const from = scanner.position
    const members = scanner.members()
    return new Payload(bytes, { start: from, end: scanner.position }, members)
  }

  /** An object made by us. */
  static of(value: object): Payload {
    return Payload.at(Buffer.from(JSON.stringify(value)))
  }

  member(key: string): Member | undefined {
    for (const member of this.members) if (member.key === key) return member
    return undefined
  }

  has(key: string): boolean {
    const member = this.member(key)
    if (member !== undefined)
      return this.#changed === undefined || !this.#changed.has(member) || this.#changed.get(member) !== undefined
    return this.#added?.has(key) ?? false
  }

  /** The value's bytes as they came, or `undefined`. */
  raw(key: string): Buffer | undefined {
    const member = this.member(key)
    return member && this.bytes.subarray(member.start, member.end)
  }

  /** The value's bytes as they will leave: a changed member counts as changed. */
  final(key: string): Buffer | undefined {
    const member = this.member(key)
    const isChanged = member !== undefined && this.#changed?.has(member) === true
    const made = isChanged ? this.#changed?.get(member) : member === undefined ? this.#added?.get(key) : undefined
    if (made !== undefined) return join(made instanceof Draft ? made.parts() : made)
    return isChanged ? undefined : this.raw(key)
  }

  /** The value as text if it came as a string, else `undefined`. */
  text(key: string): string | undefined {
    const member = this.member(key)
    return member && stringAt(this.bytes, member)
  }

  /** The value parsed, for small members whose shape we own. */
  value(key: string): unknown {
    const member = this.member(key)
    return member && JSON.parse(this.bytes.toString('utf8', member.start, member.end))
  }

  /** A member that is an object, as a payload of its own; its changes become part of this one's. */
  object(key: string): Payload | undefined {
    const member = this.member(key)
    if (member === undefined || this.bytes[member.start] !== 0x7b) return undefined
    this.#nested ??= new Map()
    let nested = this.#nested.get(member)
    if (nested !== undefined) return nested
    nested = key === '_meta' && this.#meta !== undefined ? this.#meta : Payload.at(this.bytes, member.start)
    this.#nested.set(member, nested)
    return nested
  }

  set(key: string, json: string | Uint8Array | Parts): void {
    const member = this.member(key)
    if (member !== undefined) (this.#changed ??= new Map()).set(member, toParts(json))
    else (this.#added ??= new Map()).set(key, toParts(json))
  }

  /** Puts a member inside the object member `outer`, which is created if it is missing or no object. */
  setIn(outer: string, key: string, json: string | Uint8Array): void {
    const member = this.member(outer)
    const isReplaced = member !== undefined && this.#changed?.has(member) === true
    const inner = isReplaced ? undefined : this.object(outer)
    if (inner !== undefined) return inner.set(key, json)
    const made = member === undefined ? this.#added?.get(outer) : this.#changed?.get(member)
    const draft = made instanceof Draft ? made : made === undefined ? new Draft() : Draft.from(made)
    draft.set(key, json)
    if (member === undefined) (this.#added ??= new Map()).set(outer, draft)
    else (this.#changed ??= new Map()).set(member, draft)
  }

  delete(key: string): void {
    const member = this.member(key)
    if (member !== undefined) (this.#changed ??= new Map()).set(member, undefined)
    else this.#added?.delete(key)
  }

  /** Replaces a span somewhere inside a value. */
  replace(span: Span, json: string | Uint8Array | Parts): void {
    ;(this.#edits ??= []).push({ start: span.start, end: span.end, parts: toParts(json) })
  }

  /** A copy without changes, for another use of the same bytes. */
  fresh(): Payload {
    return new Payload(this.bytes, this, this.members)
  }

  parts(): Parts {
    const isAsItCame =
      this.#changed === undefined && this.#added === undefined && this.#edits === undefined && this.#nested === undefined
    if (isAsItCame) return [this.bytes.subarray(this.start, this.end)]
    const splice = new Splice(this.bytes)
    this.#write(splice)
    return splice.parts()
  }

  #write(splice: Splice): void {
    const { members } = this
    const isDeleted = (member: Member): boolean => this.#changed?.has(member) === true && this.#changed.get(member) === undefined
    this.#edits?.sort((a, b) => a.start - b.start)
    splice.keep(this.start, this.start + 1)
    this.#writeAdded(splice, this.#changed === undefined ? members.length > 0 : !members.every(isDeleted))
    let at = this.start + 1
    let previous = -1
    for (let index = 0; index < members.length; index++) {
      const member = members[index]
      if (member === undefined || isDeleted(member)) continue
      // Between neighbours stands what stood there; where a member was left out, one comma.
      if (previous === -1) at = index === 0 ? at : member.keyStart
      else if (previous !== index - 1) {
        splice.put(COMMA)
        at = member.keyStart
      }
      this.#copy(splice, at, member.start)
      this.#writeValue(splice, member)
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
      splice.put(Buffer.from(`${JSON.stringify(key)}:`))
      for (const part of made instanceof Draft ? made.parts() : made) splice.put(part)
      if (--left > 0 || more) splice.put(COMMA)
    }
  }

  #writeValue(splice: Splice, member: Member): void {
    const changed = this.#changed?.get(member)
    const nested = this.#nested?.get(member)
    if (changed !== undefined) for (const part of changed instanceof Draft ? changed.parts() : changed) splice.put(part)
    else if (nested !== undefined) nested.#write(splice)
    else this.#copy(splice, member.start, member.end)
  }

  /** The bytes from `from` to `to`, with the replacements that fall between. */
  #copy(splice: Splice, from: number, to: number): void {
    let at = from
    for (const edit of this.#edits ?? []) {
      if (edit.start < at || edit.end > to) continue
      splice.keep(at, edit.start)
      for (const part of edit.parts) splice.put(part)
      at = edit.end
    }
    splice.keep(at, to)
  }
}

/** The text of the JSON string at `span`; `undefined` if it is no string. */
export const stringAt = (bytes: Buffer, span: Span): string | undefined => {
  if (bytes[span.start] !== 0x22) return undefined
  const word = wordAt(bytes, span.start + 1, span.end - 1)
  if (word !== undefined) return word
  return hasEscape(bytes, span)
    ? (JSON.parse(bytes.toString('utf8', span.start, span.end)) as string)
    : bytes.toString('utf8', span.start + 1, span.end - 1)
}

const hasEscape = (bytes: Buffer, { start, end }: Span): boolean => {
  if (end - start > SHORT_STRING) return bytes.subarray(start, end).includes(BACKSLASH)
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) return true
  return false
}

/** An object that we compose ourselves, member by member. */
export class Draft implements JsonObject {
  readonly #members = new Map<string, Parts>()

  has(key: string): boolean {
    return this.#members.has(key)
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

  /** The members of an object that is already text. */
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
    for (const [key, parts] of this.#members)
      out.push(Buffer.from(`${out.length === 0 ? '{' : ','}${JSON.stringify(key)}:`), ...parts)
    out.push(Buffer.from('}'))
    return out
  }
}

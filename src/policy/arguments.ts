/**
 * Decodes the arguments of a call for rules. The call itself is relayed with the received bytes.
 *
 * A rule must not read another member than the server does (T-20). Arguments that two parsers could read differently are therefore
 * refused (`UnjudgedArguments`): an object with a repeated key, and a key that differs from a key of a rule only in case. If all rules
 * name the members they read, only these are decoded, and only texts that are not longer than all constants they are compared with.
 */
import { membersAt } from '../wire/message/members.ts'
import { stringAt } from '../wire/message/payload.ts'
import type { Span } from '../wire/json/scan.ts'
import { isJsonObject, isList } from '../values/json-object.ts'
import { isCaseVariant } from '../wire/protocol/deciding-keys.ts'
import { MAX_EXPRESSION_CHARS } from './options.ts'
import { BACKSLASH, COLON, QUOTE } from '../wire/json/tokens.ts'

/** The JSON object of a call's arguments, as a span of a buffer. */
export interface ArgumentsJson extends Span {
  readonly bytes: Buffer
}

/** Arguments that fill a whole buffer. */
export const wholeOf = (bytes: Buffer): ArgumentsJson => ({ bytes, start: 0, end: bytes.length })

/** The arguments are ambiguous or too large for rules; the message is for the caller. */
export class UnjudgedArguments extends Error {}

/** The keys in rules, indexed by length. */
export class RuleKeys {
  readonly #keys: ReadonlySet<string>
  readonly #byLength = new Map<number, string[]>()

  constructor(keys: Iterable<string>) {
    this.#keys = new Set(keys)
    for (const key of this.#keys) {
      const same = this.#byLength.get(key.length)
      if (same === undefined) this.#byLength.set(key.length, [key])
      else same.push(key)
    }
  }

  /** The key of a rule that differs from `key` only in case. */
  variantOf(key: string): string | undefined {
    if (this.#keys.has(key)) return undefined
    return this.#byLength.get(key.length)?.find((name) => isCaseVariant(key, name))
  }
}

/** `maxChars` of a member whose texts are decoded at any length. */
export const ANY_CHARS = Infinity

/** How rules read a member of the arguments. */
export interface ReadMember {
  /** Length of the longest constant that the member is compared with: all longer texts give the same result. */
  readonly maxChars: number
  /** A power of two, unique for the member. */
  readonly bit: number
}

/** The decoded members of the arguments. */
export interface DecodedMembers {
  readonly value: object
  /**
   * Equivalence class of the arguments: arguments of one class give the same result in all rules. The sum of the bits of the members
   * that are too long to equal a constant; `undefined`: a member is present whose value matters.
   */
  readonly likeness: number | undefined
}

/** Replaces every text that is longer than the constants it is compared with. */
const LONG_TEXT = ' '.repeat(MAX_EXPRESSION_CHARS + 1)
/** Longest JSON form of one character: `\\u0000`. */
const MAX_BYTES_PER_CHAR = 6

/** Decodes only the members in `read`, which must not contain `__proto__`. Throws `UnjudgedArguments`. */
export const decodeMembers = (
  { bytes, start }: ArgumentsJson,
  read: ReadonlyMap<string, ReadMember>,
  keys: RuleKeys,
): DecodedMembers => {
  const value: Record<string, unknown> = {}
  let likeness: number | undefined = 0
  for (const member of membersAt(bytes, start)) {
    const { key } = member
    const how = read.get(key)
    if (how === undefined) refuseVariant(key, keys)
    else if (Object.hasOwn(value, key)) throw new UnjudgedArguments('the arguments repeat a key')
    else if (isLongerThan(how.maxChars, bytes, member)) {
      value[key] = LONG_TEXT
      if (likeness !== undefined) likeness += how.bit
    } else {
      value[key] = stringAt(bytes, member) ?? decodeArguments(bytes.subarray(member.start, member.end), keys)
      likeness = undefined
    }
  }
  return { value: readable(value), likeness }
}

/** Whether the value is a text that is certainly longer than `chars`. */
const isLongerThan = (chars: number, bytes: Buffer, { start, end }: Span): boolean =>
  bytes[start] === QUOTE && end - start - 2 > MAX_BYTES_PER_CHAR * chars

/** The type of a scalar. */
export type ScalarKind = 'text' | 'number' | 'bool'

/** A member of the arguments that rules read, with the types of all constants that they compare it with. */
export interface ReadPath {
  readonly path: readonly string[]
  readonly kinds: ReadonlySet<ScalarKind>
}

const KINDS: readonly (readonly [kind: ScalarKind, one: string, many: string])[] = [
  ['text', 'a text', 'texts'],
  ['number', 'a number', 'numbers'],
  ['bool', 'true or false', 'true or false'],
]

/**
 * Refuses values that a server may convert to the ones that rules compare them with (T-20): the Python SDK takes `"true"` and `1` for
 * `true`, `"1"` for `1`, and a text with JSON for the object.
 */
export const refuseOtherKinds = (args: unknown, paths: readonly ReadPath[]): void => {
  for (const { path, kinds } of paths) {
    let value = args
    for (const [at, step] of path.entries()) {
      if (typeof value === 'string')
        throw new UnjudgedArguments(`${nameOf(path.slice(0, at))} is a text, and rules read its members`)
      value = memberOf(value, step)
    }
    const kind = kindOf(value)
    // Nothing is converted to a text that a rule names.
    const isCompared = kinds.has('number') || kinds.has('bool')
    if (kind === undefined || !isCompared || kinds.has(kind)) continue
    const [, found] = KINDS.find(([one]) => one === kind) ?? []
    const wanted = KINDS.filter(([one]) => kinds.has(one)).map(([, , many]) => many)
    throw new UnjudgedArguments(`${nameOf(path)} is ${found}, and rules compare it with ${wanted.join(' or ')}`)
  }
}

const nameOf = (path: readonly string[]): string => `the argument ${JSON.stringify(path.join('.'))}`

const memberOf = (value: unknown, name: string): unknown => {
  if (value instanceof Map) return value.get(name)
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

const kindOf = (value: unknown): ScalarKind | undefined => {
  if (typeof value === 'string') return 'text'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'number' || typeof value === 'bigint' ? 'number' : undefined
}

/** Decodes a scanned value; integers that a double cannot represent become `bigint`. Throws `UnjudgedArguments`. */
export const decodeArguments = (json: Buffer, keys: RuleKeys): unknown => {
  const text = json.toString()
  const walk: Walk = { keys, count: 0, isRevived: false }
  const value: unknown = JSON.parse(text)
  look(value, walk)
  if (walk.count !== keysIn(json)) throw new UnjudgedArguments('the arguments repeat a key')
  return walk.isRevived ? JSON.parse(text, revived) : value
}

interface Walk {
  readonly keys: RuleKeys
  count: number
  /** A value is changed by `revived`. */
  isRevived: boolean
}

/** The CEL library takes the member `constructor` for the type of an object, and finds no member of an unknown type. A `Map` has none. */
const readable = <T extends object>(object: T): T | ReadonlyMap<string, unknown> =>
  Object.hasOwn(object, 'constructor') ? new Map(Object.entries(object)) : object

/** Counts the keys, and refuses those that a server might take for a key of a rule. The scanner has bounded the depth. */
const look = (value: unknown, walk: Walk): void => {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) && Number.isInteger(value)) walk.isRevived = true
    return
  }
  if (isList(value)) {
    for (const item of value) look(item, walk)
    return
  }
  if (!isJsonObject(value)) return
  if (Object.hasOwn(value, 'constructor')) walk.isRevived = true
  // All members of a result of JSON.parse are own members.
  for (const key in value) {
    walk.count++
    refuseVariant(key, walk.keys)
    look(value[key], walk)
  }
}

const refuseVariant = (key: string, keys: RuleKeys): void => {
  const variant = keys.variantOf(key)
  if (variant !== undefined)
    throw new UnjudgedArguments(`the argument ${JSON.stringify(key)} differs from ${JSON.stringify(variant)} only in case`)
}

/** Number of keys in the text: colons outside of strings. */
const keysIn = (json: Buffer): number => {
  let count = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === COLON) count++
    else if (byte === QUOTE) for (at++; json[at] !== QUOTE; at++) if (json[at] === BACKSLASH) at++
  }
  return count
}

/** Reviver that keeps large integers exact ([ECMA-262 JSON.parse source text access], not yet in TypeScript's library), and objects readable. */
const revived = (_key: string, value: unknown, context?: { readonly source?: string }): unknown => {
  const source = context?.source
  if (isJsonObject(value)) return readable(value)
  return typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^-?\d+$/.test(source)
    ? BigInt(source)
    : value
}

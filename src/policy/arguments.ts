/**
 * The arguments of a call as rules see them. They are decoded and never printed again: what leaves is what came.
 *
 * A rule must not read another member than the server does (T-20). Arguments that two parsers could read differently are therefore not
 * judged: an object with a repeated key, and a key that equals one of a rule in all but case. Where rules name the members that they
 * read, nothing else is decoded, and no text that is longer than all that rules compare it with.
 */
import { membersAt } from '../wire/message/members.ts'
import { stringAt } from '../wire/message/payload.ts'
import type { Span } from '../wire/json/scan.ts'
import { isJsonObject, isList } from '../values/json-object.ts'
import { isCaseVariant } from '../wire/protocol/deciding-keys.ts'
import { MAX_EXPRESSION_CHARS } from './options.ts'

/** The JSON object of a call's arguments, where it stands. */
export interface ArgumentsJson extends Span {
  readonly bytes: Buffer
}

/** Arguments that are all of a buffer. */
export const wholeOf = (bytes: Buffer): ArgumentsJson => ({ bytes, start: 0, end: bytes.length })

/** The arguments cannot be judged; the message is for the caller. */
export class UnjudgedArguments extends Error {}

/** Keys that rules name, by their length. */
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

  /** The key of a rule that `key` equals in all but case. */
  variantOf(key: string): string | undefined {
    if (this.#keys.has(key)) return undefined
    return this.#byLength.get(key.length)?.find((name) => isCaseVariant(key, name))
  }
}

/** Of a member whose texts are read whatever their length. */
export const ANY_CHARS = Infinity

/** How rules read a member of the arguments. */
export interface ReadMember {
  /** Longer texts are alike to them. */
  readonly maxChars: number
  /** A power of two, of this member alone. */
  readonly bit: number
}

/** Members of the arguments. */
export interface DecodedMembers {
  readonly value: object
  /**
   * Equal for arguments that are alike to all rules: the sum of the bits of those members that are texts which are too long to equal a constant;
   * `undefined`: another member is there, whose value counts.
   */
  readonly likeness: number | undefined
}

/** Stands for every text that is longer than the constants it is compared with. */
const LONG_TEXT = ' '.repeat(MAX_EXPRESSION_CHARS + 1)
/** Of one character, at most: `\\u0000`. */
const MAX_BYTES_PER_CHAR = 6

const COLON = 0x3a
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Only these members of the arguments; what the others hold decides nothing. `read` has no `__proto__`. Throws `UnjudgedArguments`. */
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
  return { value, likeness }
}

/** Whether a text stands there that is certainly longer. */
const isLongerThan = (chars: number, bytes: Buffer, { start, end }: Span): boolean =>
  bytes[start] === QUOTE && end - start - 2 > MAX_BYTES_PER_CHAR * chars

/**
 * `json`: of a value that was scanned before. Numbers become doubles, whole numbers that a double cannot hold exactly become ints.
 * Throws `UnjudgedArguments`.
 */
export const decodeArguments = (json: Buffer, keys: RuleKeys): unknown => {
  const text = json.toString()
  const walk: Walk = { keys, count: 0, isInexact: false }
  const value: unknown = JSON.parse(text)
  look(value, walk)
  if (walk.count !== keysIn(json)) throw new UnjudgedArguments('the arguments repeat a key')
  return walk.isInexact ? JSON.parse(text, exactly) : value
}

interface Walk {
  readonly keys: RuleKeys
  count: number
  isInexact: boolean
}

/** Counts the keys, and refuses those that a server might take for one of a rule. The depth of messages is bounded before. */
const look = (value: unknown, walk: Walk): void => {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) && Number.isInteger(value)) walk.isInexact = true
    return
  }
  if (isList(value)) {
    for (const item of value) look(item, walk)
    return
  }
  if (!isJsonObject(value)) return
  // Of what JSON.parse made all members are its own.
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

/** How many keys are written: colons outside of texts. */
const keysIn = (json: Buffer): number => {
  let count = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === COLON) count++
    else if (byte === QUOTE) for (at++; json[at] !== QUOTE; at++) if (json[at] === BACKSLASH) at++
  }
  return count
}

/** TypeScript's library does not know the third argument yet ([ECMA-262 JSON.parse source text access]). */
const exactly = (_key: string, value: unknown, context?: { readonly source?: string }): unknown => {
  const source = context?.source
  return typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^-?\d+$/.test(source)
    ? BigInt(source)
    : value
}

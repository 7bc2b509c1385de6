/**
 * The keys that the gateway reads or writes, by their place in a message (T-20, B269, B270). They are compared after decoding. They may
 * not be repeated, and no key may differ from them only in case: Go's encoding/json and others use the last member in any case, so that
 * the server would use a value that no rule was applied to.
 *
 * The surprise: keys that are not in the table of their place are content, and may be repeated and written in any case.
 */
import { META } from './meta.ts'

export class DecidingKeys {
  readonly #keys: ReadonlySet<string>
  /** By length, which excludes most keys at once. */
  readonly #byLength: readonly (readonly string[] | undefined)[]

  /** `keys`: in ASCII. Names that may be any text are compared by `isCaseVariant`. */
  constructor(keys: readonly string[]) {
    this.#keys = new Set(keys)
    const byLength: string[][] = []
    for (const key of keys) (byLength[key.length] ??= []).push(key)
    this.#byLength = byLength
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  /** Returns the key of this table that `key` equals under Unicode simple case folding. `key` must not be in the table itself. */
  variantOf(key: string): string | undefined {
    const candidates = this.#byLength[key.length]
    if (candidates !== undefined) for (const candidate of candidates) if (isFoldOf(key, candidate)) return candidate
    return undefined
  }
}

const isFoldOf = (key: string, ascii: string): boolean => {
  for (let at = 0; at < ascii.length; at++) if (folded(key.charCodeAt(at)) !== folded(ascii.charCodeAt(at))) return false
  return true
}

/** Simple case folding for all characters that fold to ASCII: its capitals, ſ (U+017F) and K (U+212A) ([Unicode CaseFolding.txt], C and S). */
const folded = (unit: number): number => {
  if (unit >= 0x41 && unit <= 0x5a) return unit | 0x20
  return unit === 0x17f ? 0x73 : unit === 0x212a ? 0x6b : unit
}

/** Keys of the message itself. */
export const ENVELOPE_KEYS = new DecidingKeys(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])

/** Keys of an entry of `inputRequests`. */
export const QUESTION_KEYS = new DecidingKeys(['method', 'params'])

/** Keys of `params`, in requests and notifications of both directions. */
export const PARAMS_KEYS = new DecidingKeys(
  `_meta name arguments uri ref cursor taskId level requestState inputResponses task context
  protocolVersion capabilities clientInfo notifications requestId progressToken status logger
  message mode url elicitationId requestedSchema includeContext messages tools toolChoice`.split(/\s+/),
)

/** Keys of every `_meta` that is read. */
export const META_KEYS = new DecidingKeys([...Object.values(META), 'progressToken'])

/** Keys of the `ref` of a completion. */
export const REF_KEYS = new DecidingKeys(['type', 'name', 'uri'])

/** Keys of `result`. */
export const RESULT_KEYS = new DecidingKeys(
  `_meta resultType ttlMs cacheScope content structuredContent isError contents messages completion
  inputRequests requestState task taskId status tools resources resourceTemplates prompts nextCursor
  supportedVersions protocolVersion capabilities instructions action roots role`.split(/\s+/),
)

/** Keys of `error`. */
export const ERROR_KEYS = new DecidingKeys(['code', 'message', 'data'])

/** Whether `key` differs from `name`, which may be any text, only under Unicode simple case folding. */
export const isCaseVariant = (key: string, name: string): boolean => {
  // Simple folding keeps the length, and folds a character of ASCII only to its other case.
  if (key.length !== name.length || key === name) return false
  for (let at = 0; at < key.length; at++) if (!mayFold(key.charCodeAt(at), name.charCodeAt(at))) return false
  // The flags `i` and `u` compare by simple case folding ([ECMA-262 Canonicalize]).
  return new RegExp(`^${name.replaceAll(SYNTAX, '\\$&')}$`, 'iu').test(key)
}

const SYNTAX = /[\\^$.*+?()[\]{}|/]/g

const mayFold = (a: number, b: number): boolean => a > 0x7f || b > 0x7f || folded(a) === folded(b)

/**
 * A message as it is shown: whole up to a limit, else its beginning and its end, and without secrets in either case. Secrets go by value
 * (`hide`) and, as values that come while we run are not known, by the name of the member that holds them.
 */

export interface KeptBody {
  /** Bytes of the message itself. */
  readonly bytes: number
  /** The whole of it. */
  readonly text?: string
  /** In place of it. */
  readonly head?: string
  readonly tail?: string
  readonly omitted?: number
  /** It passed on while it came: this is what the server sent. */
  readonly streamed?: true
}

/** Returns the text without secrets. */
export type Hide = (text: string) => string

/** Members whose values are never shown, whatever they are. */
const SECRET_MEMBER =
  /("(?:[\w-]{0,40}[_-])?(?:authorization|cookie|password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|access[_-]?token|refresh[_-]?token|id[_-]?token|client[_-]?secret|bearer)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|-?\d[\d.eE+-]*)/gi

/** The text without the secrets that `hide` knows, and without the values of members that are named like secrets. */
export const withoutSecrets = (text: string, hide: Hide): string => hide(text).replace(SECRET_MEMBER, '$1"***"')

/**
 * A captured message as it is shown: whole up to a limit, else its beginning and end, and always without secrets. Known secrets are removed
 * by value (`hide`), and unknown ones by the name of their member.
 */

export interface KeptBody {
  /** Size of the message in bytes. */
  readonly bytes: number
  /** The whole message. */
  readonly text?: string
  /** Instead of `text`: beginning, end, and the number of bytes between them. */
  readonly head?: string
  readonly tail?: string
  readonly omitted?: number
  /** The message was streamed: this is the server's form of it. */
  readonly streamed?: true
}

/** Returns a text without known secrets. */
export type Hide = (text: string) => string

/** Members whose values are never shown. */
const SECRET_MEMBER =
  /("(?:[\w-]{0,40}[_-])?(?:authorization|cookie|password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|access[_-]?token|refresh[_-]?token|id[_-]?token|client[_-]?secret|bearer)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|-?\d[\d.eE+-]*)/gi

/** Returns a text without known secrets, and without the values of members that are named like secrets. */
export const withoutSecrets = (text: string, hide: Hide): string => hide(text).replace(SECRET_MEMBER, '$1"***"')

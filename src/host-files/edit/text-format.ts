/** What each format of configuration files can do for `editor`. */

/** Keys of mappings, and positions in lists. */
export type Steps = readonly (string | number)[]

/** How texts of one format are read and changed. */
export interface TextFormat {
  /** Plain data; nothing of an empty text. Throws `EditError` where the text cannot be read. */
  readonly parse: (text: string) => unknown
  /** The text with `value` at a place where nothing is yet, in a list behind its last item. */
  readonly insert: (text: string, steps: Steps, value: unknown) => string
  /** The text with `value` at its place, where what is there is simple enough; `undefined`: it is not. */
  readonly replace?: (text: string, steps: Steps, value: unknown) => string | undefined
  /** The text without what is at `steps`. */
  readonly remove: (text: string, steps: Steps) => string
}

/** A file that cannot be read, or not changed safely. The message is the predicate of a sentence about the file. */
export class EditError extends Error {
  override readonly name = 'EditError'
}

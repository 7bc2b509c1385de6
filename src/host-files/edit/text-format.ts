/** The interface of the formats of configuration files for `editor`. */

/** Keys of mappings, and positions in lists. */
export type Steps = readonly (string | number)[]

/** How texts of one format are read and changed. */
export interface TextFormat {
  /** Returns plain data; `undefined` for an empty text. Throws `EditError` for an unreadable text. */
  readonly parse: (text: string) => unknown
  /** Returns the text with `value` at an unused key, or after the last item of a list. */
  readonly insert: (text: string, steps: Steps, value: unknown) => string
  /** Returns the text with `value` in place of a simple value; `undefined`: the current value is not simple. */
  readonly replace?: (text: string, steps: Steps, value: unknown) => string | undefined
  /** Returns the text without the value at `steps`. */
  readonly remove: (text: string, steps: Steps) => string
}

/** A file is unreadable, or cannot be changed safely. The message is the predicate of a sentence about the file. */
export class EditError extends Error {
  override readonly name = 'EditError'
}

/** Data with `value` at `steps` and nothing else. */
export const nested = (steps: Steps, value: unknown): unknown =>
  steps.toReversed().reduce<unknown>((inner, step) => (typeof step === 'number' ? [inner] : { [step]: inner }), value)

/** `line 3, column 5`, of a position in a text. */
export const placeIn = (text: string, at: number): string => {
  const before = text.slice(0, at).split('\n')
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}

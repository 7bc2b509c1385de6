/** Long texts that say whose they are, for tests of memory that is used again: a mix-up of two of them shows in any 16 bytes. */

const MARK_BYTES = 16

/** A text of this length in which every 16 bytes are the mark. */
export const markedText = (mark: string, length: number): string =>
  mark
    .padEnd(MARK_BYTES, '.')
    .repeat(Math.ceil(length / MARK_BYTES))
    .slice(0, length)

export const randomMark = (): string => Math.random().toString(36).slice(2)

/** What a parser under fire promises, and the few tools its oracles share (RELIABILITY 5). */
import { deepStrictEqual, ok } from 'node:assert/strict'

/** Whatever the bytes, `check` must return. */
export interface Target {
  readonly name: string
  /** Pieces of the language it reads, which random inputs are made of. */
  readonly words: readonly string[]
  /** Throws where an oracle is broken. */
  readonly check: (input: Buffer) => void
}

/** Sizes of chunks in which a stream is also read: none of them may show. */
export const chunkSizes = ({ length }: Buffer): readonly number[] => (length > 4_096 ? [1_021] : [1, 3, 64])

/** The input in pieces, each in memory of its own that nobody else changes. */
export const inChunks = (input: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(input.length / size) }, (_, at) => Buffer.from(input.subarray(at * size, (at + 1) * size)))

/** The two are the same, member by member. */
export const same: (ours: unknown, theirs: unknown) => void = (ours, theirs) => deepStrictEqual(ours, theirs)

/** What must be true is. */
export const must: (condition: boolean, promise: string) => asserts condition = (condition, promise) => ok(condition, promise)

/** What a function throws or returns, as a value to compare. */
export const outcome = <T>(run: () => T): { readonly value: T } | { readonly error: unknown } => {
  try {
    return { value: run() }
  } catch (error) {
    return { error }
  }
}

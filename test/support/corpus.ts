/** The bad inputs kept for ever, each file under `test/corpus` in a form of its own. */
import { readFileSync } from 'node:fs'

/** A file of the corpus, read as JSON. */
export const corpus = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../corpus/${name}.json`, import.meta.url), 'utf8'))

/** A text with one long run in it: whole, or what stands before the run, what is repeated, how often, and what stands behind. */
export type Packed = readonly [text: string] | readonly [before: string, run: string, times: number, after: string]

export const unpack = (packed: Packed): string =>
  packed.length === 1 ? packed[0] : packed[0] + packed[1].repeat(packed[2]) + packed[3]

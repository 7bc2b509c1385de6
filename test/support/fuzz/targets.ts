/** All parsers that read what strangers wrote, and the bad inputs that are kept for ever. */
import * as fc from 'fast-check'
import { corpus } from '../corpus.ts'
import { kernelTargets } from './kernel.ts'
import { messageTargets } from './messages.ts'
import { nameTargets } from './names.ts'
import { connectionTargets } from './connections.ts'
import { requestTargets } from './requests.ts'
import { streamTargets } from './streams.ts'
import type { Target } from './target.ts'
import { textTargets } from './texts.ts'

export const targets: readonly Target[] = [
  ...streamTargets,
  ...requestTargets,
  ...connectionTargets,
  ...messageTargets,
  ...kernelTargets,
  ...nameTargets,
  ...textTargets,
]

/** Random inputs for a parser: words of its language, of other languages, and noise. */
export const inputs = ({ words }: Target): fc.Arbitrary<Buffer> => {
  const word = fc.constantFrom(...words).map((text) => Buffer.from(text))
  const noise = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes))
  const any = fc.oneof(
    { weight: 8, arbitrary: word },
    { weight: 1, arbitrary: noise },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }).map((text) => Buffer.from(text)) },
  )
  return fc.array(any, { maxLength: 24 }).map((parts) => Buffer.concat(parts))
}

/** The fixed corpus: each seed as it stands and in eight deterministic mutations, and everything that was ever found. */
export const badInputs = (): Buffer[] => {
  const seeds = corpus('bytes') as { seeds: string[]; found: string[] }
  const whole = seeds.seeds.map((text) => Buffer.from(text, 'latin1'))
  return [
    ...whole.flatMap((seed, at) => [seed, ...MUTATIONS.map((mutate) => mutate(seed, whole[(at * 7 + 3) % whole.length]!))]),
    ...seeds.found.map((text) => Buffer.from(text, 'latin1')),
  ]
}

const join = (...parts: (Buffer | string)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)))
const half = (bytes: Buffer): number => Math.floor(bytes.length / 2)

const MUTATIONS: readonly ((seed: Buffer, other: Buffer) => Buffer)[] = [
  (seed) => seed.subarray(0, Math.floor((seed.length * 2) / 3)),
  (seed) => join(seed.subarray(half(seed)), seed.subarray(0, half(seed))),
  (seed) => join(seed.subarray(0, half(seed)), '\0', seed.subarray(half(seed))),
  (seed) => join(seed.subarray(0, half(seed)), '\r\n', seed.subarray(half(seed))),
  (seed) => join(seed.subarray(0, half(seed)), '\xff\xc0', seed.subarray(half(seed))),
  (seed) => Buffer.concat(Array.from({ length: 8 }, () => seed)),
  (seed, other) => join(seed.subarray(0, half(seed)), other, seed.subarray(half(seed))),
  (seed) => Buffer.from(seed.map((byte, at) => (at % 5 === 2 ? byte ^ 0x20 : byte))),
]

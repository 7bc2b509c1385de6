/**
 * The scan kernel against the plain scanner and `JSON.parse`: the same value ends at the same byte, the same mistake is named in the same
 * words, wherever blocks of 64 bytes, windows and chunks cut the text.
 */
import { isUtf8 } from 'node:buffer'
import { CHECK_ALL, CHECK_NOTHING, DOUBT, Kernel, MORE, ValueSkip } from '../../../src/wire/kernel/kernel.ts'
import { ScanAhead } from '../../../src/wire/json/scan-ahead.ts'
import { EnvelopeError, readAhead, readServerMessage } from '../../../src/wire/message/envelope.ts'
import type { Envelope } from '../../../src/wire/message/envelope.ts'
import { NO_LIMITS, Scanner } from '../../../src/wire/json/scan.ts'
import type { ScanLimits } from '../../../src/wire/json/scan.ts'
import { ScanError } from '../../../src/wire/json/scan-error.ts'
import { must, outcome, same } from './target.ts'
import type { Target } from './target.ts'

/** What stands behind a value so that enough bytes are left for the kernel to be asked. */
const BEHIND = 600

/** Numbers that follow from a text: the same text makes the same document. */
const numbersFrom = (input: Buffer): ((below: number) => number) => {
  let state = 2_166_136_261
  for (const byte of input) state = Math.imul(state ^ byte, 16_777_619)
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

const SPACES = ['', '', '', '', ' ', '\n', '\t', '\r\n  ', ' '.repeat(70)]
const SCALARS = ['0', '-0', '1', '17', '-3.25', '1e5', '1E-7', '2.50e+10', '12345678901234567890', 'true', 'false', 'null']
const PIECES = ['a', 'text ', 'é', '模', '😀', String.raw`\"`, String.raw`\\`, String.raw`\n`, String.raw`\/`, String.raw`\u00e9`]
const LONG = [...PIECES, String.raw`\\\"`, String.raw`\ud83d\ude00`, '{', '}', '[', ']', ':', ',', 'x'.repeat(64), 'y'.repeat(50)]
const FAULTS = [
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ':',
  ',',
  '0',
  '.',
  'e',
  '-',
  't',
  'u',
  '\u0000',
  '\u001f',
  '\u000c',
  '\u001a',
  ' ',
  '/',
]

/** JSON of every kind, up to a few thousand bytes. */
const documentFrom = (pick: (below: number) => number): string => {
  let left = 1 + pick(120)
  const space = (): string => SPACES[pick(SPACES.length)]!
  const text = (): string => {
    const pieces = pick(4) === 0 ? LONG : PIECES
    return `"${Array.from({ length: pick(8) === 0 ? pick(40) : pick(5) }, () => pieces[pick(pieces.length)]).join('')}"`
  }
  const list = (open: string, close: string, item: () => string): string => {
    const items: string[] = []
    for (let count = Math.min(pick(6), Math.max(0, left)); count > 0; count--) items.push(`${space()}${item()}${space()}`)
    return `${open}${items.length === 0 ? space() : items.join(',')}${close}`
  }
  const value = (depth: number): string => {
    left--
    const kind = depth > 12 ? pick(3) : pick(7)
    if (kind < 2) return text()
    if (kind === 2) return SCALARS[pick(SCALARS.length)]!
    if (kind < 5) return list('{', '}', () => `${text()}${space()}:${space()}${value(depth + 1)}`)
    return list('[', ']', () => value(depth + 1))
  }
  return pick(2) === 0 ? list('[', ']', () => value(1)) : list('{', '}', () => `${text()}${space()}:${space()}${value(1)}`)
}

/** With up to two bytes put in, left out or changed. */
const damaged = (text: string, pick: (below: number) => number): string => {
  let result = text
  for (let count = pick(3); count > 0; count--) {
    const at = pick(result.length + 1)
    const fault = pick(3) === 0 ? String.fromCodePoint(pick(128)) : FAULTS[pick(FAULTS.length)]
    const kind = pick(3)
    result = result.slice(0, at) + (kind === 0 ? '' : fault) + result.slice(kind === 1 ? at : at + 1)
  }
  return result
}

const scan = (bytes: Buffer, start: number, options: { strict: boolean; isPlain: boolean; limits: ScanLimits }): number => {
  const scanner = new Scanner(bytes, { ...options, start })
  return scanner.skip().end
}

/** Where it ends, or the whole of the error. */
const told = (run: () => number): unknown => {
  const got = outcome(run)
  if ('value' in got) return got.value
  must(got.error instanceof ScanError, 'throws ScanError and nothing else')
  const { kind, message, offset, limit } = got.error
  return { kind, message, offset, limit }
}

/** In pieces, as a stream brings it. */
const inPieces = (kernel: Kernel, bytes: Buffer, start: number, size: number): number => {
  const skip = new ValueSkip(kernel)
  for (let from = start; from < bytes.length; from += size) {
    const end = skip.push(bytes.subarray(from, from + size), 0)
    if (end === DOUBT) return DOUBT
    if (end !== MORE) return from + end
  }
  return DOUBT
}

/** So many readings of one document, each with damages of its own: making one costs more than reading it. */
const DOCUMENTS = 2
const PIECE_BYTES = [1, 7, 63, 64, 65, 200]

const checkAt = (kernel: Kernel, bytes: Buffer, start: number, pick: (below: number) => number): void => {
  const few = { maxDepth: 1 + pick(8), maxValues: 1 + pick(60), maxKeysPerObject: 1 + pick(5) }
  const limits = pick(3) === 0 ? few : NO_LIMITS
  const strict = pick(2) === 0
  const plain = told(() => scan(bytes, start, { strict, isPlain: true, limits }))
  same(
    told(() => scan(bytes, start, { strict, isPlain: false, limits })),
    plain,
  )
  if (strict && limits === NO_LIMITS) {
    const end = typeof plain === 'number' ? plain : bytes.length
    const text = bytes.subarray(start, end)
    const isJson = isUtf8(text) && 'value' in outcome(() => JSON.parse(text.toString()) as unknown)
    if (isUtf8(text)) same(typeof plain === 'number', isJson)
    // What is right is taken, and not left to the plain scanner.
    if (isJson) same(kernel.valueEnd(bytes.subarray(0, end), start, NO_LIMITS, CHECK_ALL), end)
  }
  if (pick(2) === 0) return
  const whole = kernel.valueEnd(bytes, start, NO_LIMITS, CHECK_NOTHING)
  same(inPieces(kernel, bytes, start, bytes.length > 2_000 ? 1_021 : PIECE_BYTES[pick(PIECE_BYTES.length)]!), whole)
}

/** A result of a server with what is found in it: blocks, small and large values. */
const resultFrom = (input: Buffer, pick: (below: number) => number): string => {
  const text = (): string => JSON.stringify(pick(3) === 0 ? input.toString('latin1').slice(0, 60) : 'x'.repeat(pick(150)))
  const blocks = [
    () => `{"type":"text","text":${text()}}`,
    () => `{"text":${text()},"type":"text"}`,
    () => `{"type":"text","text":${text()},"_meta":{}}`,
    () => `{"type":"resource_link","uri":"file:///${pick(99)}","name":${text()}}`,
    () => documentFrom(pick),
    () => SCALARS[pick(SCALARS.length)],
    () => `{"role":"user","content":[{"type":"text","text":${text()}}]}`,
  ]
  const list = (): string =>
    `[${Array.from({ length: pick(9) }, () => `${SPACES[pick(SPACES.length)]}${blocks[pick(blocks.length)]!()}`).join(',')}]`
  const members = [
    () => `"content":${list()}`,
    () => `"messages":${list()}`,
    () => `"contents":${list()}`,
    () => `"structuredContent":${documentFrom(pick)}`,
    () => `"items":[${Array.from({ length: pick(4) }, () => documentFrom(pick)).join(',')}]`,
    () => '"isError":false',
  ]
  const some = Array.from({ length: pick(5) }, () => members[pick(members.length)]!())
  return `{"jsonrpc":"2.0","result":{${some.join(',')}},"id":${pick(9)}}`
}

/** All that is known of a message, the blocks found in it included. */
const envelopeTold = (read: () => Envelope): unknown => {
  const got = outcome(read)
  if (!('value' in got)) {
    must(got.error instanceof EnvelopeError, 'throws EnvelopeError and nothing else')
    return { code: got.error.code, message: got.error.message, id: got.error.id }
  }
  const { bytes: _, params, result, error, ...rest } = got.value
  return { ...rest, members: [params, result, error].map((payload) => payload && [payload.start, payload.end, payload.members]) }
}

/** A message that is read while it comes ends as one that is read at once. */
const aheadTarget: Target = {
  name: 'messages read ahead',
  words: ['{', '}', '[', ']', ',', ':', '"', '\\', '"content":', '"type":"text"', '1', 'null', ' ', 'x', '\u0000'],
  check: (input) => {
    const pick = numbersFrom(input)
    const whole = Buffer.from(`${damaged(resultFrom(input, pick), pick)}${' '.repeat(pick(2) * 600)}`)
    const ahead = new ScanAhead({ firstBytes: 1 + pick(200), stepBytes: 1 + pick(200), minKnownBytes: 64 + pick(200) })
    const size = Math.ceil(whole.length / (1 + pick(24)))
    for (let to = size; to < whole.length; to += size) readAhead(whole.subarray(0, to), ahead)
    same(
      envelopeTold(() => readServerMessage(whole, ahead)),
      envelopeTold(() => readServerMessage(whole)),
    )
  },
}

const kernelTarget: Target = {
  name: 'scan kernel',
  words: [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\"',
    '\\\\',
    '\\u0041',
    '\\u',
    '1',
    '-',
    '1e5',
    'true',
    'null',
    '"a":',
    ' ',
    '\n',
    'x',
  ],
  check: (input) => {
    const kernel = Kernel.shared
    if (kernel === undefined) return
    const pick = numbersFrom(input)
    const before = ' '.repeat(pick(70))
    const behind = Buffer.alloc(BEHIND, ' ')
    const document = documentFrom(pick)
    const documents = Array.from({ length: DOCUMENTS }, () => Buffer.from(damaged(document, pick)))
    // What came, what came as the text of a string, and a document that follows from it.
    const texts = [input, Buffer.concat([Buffer.from('"'), input, Buffer.from('"')]), ...documents]
    for (const text of texts) {
      const bytes = Buffer.concat([Buffer.from(before), text, behind])
      if (text[0] === 0x7b || text[0] === 0x5b) checkAt(kernel, bytes, before.length, pick)
      else checkAt(kernel, Buffer.concat([Buffer.from(`${before}[`), text, Buffer.from(']'), behind]), before.length, pick)
    }
  },
}

export const kernelTargets: readonly Target[] = [kernelTarget, aheadTarget]

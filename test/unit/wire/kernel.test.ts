/** The scan kernel: what is committed is what the source compiles to, and where it is missing the plain scanner does the same. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { buildKernel } from '../../../scripts/kernel.ts'
import { EnvelopeError, readHostMessage, readServerMessage } from '../../../src/wire/message/envelope.ts'
import { CHECK_ALL, CHECK_NOTHING, DOUBT, Kernel, MORE, ValueSkip } from '../../../src/wire/kernel/kernel.ts'
import { NO_LIMITS } from '../../../src/wire/json/scan.ts'

const BINARY = new URL('../../../src/wire/kernel/binary.ts', import.meta.url)
/** Another compiler is started. */
const COMPILE_MS = 120_000
/** Hundreds of thousands of texts. */
const TEXTS_MS = 60_000
const kernelOf = (): Kernel => {
  const kernel = Kernel.shared
  if (kernel === undefined) throw new Error('this machine has no SIMD')
  return kernel
}

test(
  'the committed binary is what the source of the kernel compiles to',
  async () => {
    expect(await readFile(BINARY, 'utf8')).toBe(await buildKernel())
  },
  COMPILE_MS,
)

test.each([
  ['a window', 64 * 1024],
  ['several windows', 300_000],
  ['a megabyte', 1_048_576],
])('a value of the size of %s ends where it ends, wherever the windows cut it', (_, size) => {
  const text = String.raw`{"a":"\\\"x\u00e9","b":[1,-2.5e3,true],"c":{"d":""}},`
  for (let shift = 0; shift < 70; shift++) {
    const value = Buffer.from(`[${' '.repeat(shift)}${text.repeat(size / text.length)}null]`)
    const bytes = Buffer.concat([Buffer.from('x'.repeat(shift)), value, Buffer.from(',{"more":1}')])
    expect(kernelOf().valueEnd(bytes, shift, NO_LIMITS, CHECK_ALL)).toBe(shift + value.length)
  }
})

test('a value over many chunks ends where it ends, and tells what is open between two of them', () => {
  const skip = new ValueSkip(kernelOf())
  expect(skip.push(Buffer.from('x[{"a":["b\\'), 1)).toBe(MORE)
  expect([skip.isInString, skip.isEscaped, skip.open]).toEqual([true, true, [false, true, false]])
  expect(skip.push(Buffer.from('"c"'), 0)).toBe(MORE)
  expect([skip.isInString, skip.isEscaped, skip.open]).toEqual([false, false, [false, true, false]])
  expect(skip.push(Buffer.from(']}], more'), 0)).toBe(3)
})

test('a string ends at the first quote that is not escaped; runs of backslashes of any length do not matter', () => {
  for (let backslashes = 0; backslashes < 200; backslashes++) {
    const inside = '\\'.repeat(backslashes)
    const end = backslashes % 2 === 0 ? backslashes + 1 : backslashes + 1 + 5
    const bytes = Buffer.from(`${inside}"tail"${' '.repeat(200)}`)
    expect(kernelOf().checkedStringEnd(bytes, 0)).toBe(end)
    expect(kernelOf().stringEnd(bytes, 0)).toBe(end)
  }
})

/** Where one byte stands: outside of strings, in one, behind a backslash, in a number. */
const PLACES: readonly (readonly [before: string, after: string])[] = [
  ['[', ']'],
  ['[1', ',2]'],
  ['{"a":1', '}'],
  ['{"a"', ':1}'],
  ['{', '"a":1}'],
  ['["', '"]'],
  ['["\\', '"]'],
  ['["\\u00', '0"]'],
  ['[1', '1]'],
  ['[tr', 'e]'],
]
test('T-20 of every byte in every place the kernel takes what JSON takes, and nothing else', () => {
  const wrong: string[] = []
  for (const [before, after] of PLACES)
    for (let code = 0; code < 128; code++)
      for (const shift of [0, 60, 62, 63]) {
        const text = `${before}${String.fromCodePoint(code)}${after}`
        const bytes = Buffer.from(`${' '.repeat(shift)}${text}${' '.repeat(100)}`)
        const end = kernelOf().valueEnd(bytes, shift, NO_LIMITS, CHECK_ALL)
        const length = Array.from(text, (_, at) => at + 1).find((size) => isJson(text.slice(0, size)))
        if (end !== (length === undefined ? DOUBT : shift + length)) wrong.push(`${JSON.stringify(text)} at ${shift}: ${end}`)
      }
  expect(wrong).toEqual([])
})
/** Texts of at most `longest` of these pieces. */
const textsOf = (pieces: readonly string[], longest: number): string[] => {
  const texts: string[][] = [['']]
  for (let length = 1; length <= longest; length++)
    texts.push(texts.at(-1)!.flatMap((text) => pieces.map((piece) => text + piece)))
  return texts.flat()
}
/** What stands before a text and behind it, so that its block is neither the first nor the last one. */
const FILLED = 'x'.repeat(61)
const misread = (texts: readonly string[], [open, close]: readonly [string, string], shifts: readonly number[]): string[] =>
  texts.filter((text) => {
    const isRight = isJson(`${open}${text}${close}`)
    return shifts.some((shift) => {
      const value = `["${FILLED}${' '.repeat(shift)}",${open}${text}${close},"${FILLED}","${FILLED}"]`
      const bytes = Buffer.from(value)
      const end = kernelOf().valueEnd(bytes, 0, NO_LIMITS, CHECK_ALL)
      // Brackets in the text may close what stands around it.
      return end === bytes.length ? !isRight && !isJson(value) : isRight || (end >= 0 && !isJson(value.slice(0, end)))
    })
  })

test.each([
  ['numbers', ['-', '+', '0', '7', '.', 'e', 'E'], 5, ['[', ']'], [0, 58, 61]],
  ['words', ['true', 'false', 'null', 'tru', 'nul', 'fals', 'e', 'l', ',', '1', '-'], 3, ['[', ']'], [0, 54, 58, 60]],
  ['tokens', ['{', '}', '[', ']', ',', ':', '"a"', '1'], 5, ['[', ']'], [0, 60]],
  ['tokens in an object', ['{', '}', '[', ']', ',', ':', '"a"', '1'], 5, ['{', '}'], [0, 60]],
  ['tokens and white space', ['{', '}', '[', ']', ',', ':', '"a"', '1', ' '], 4, ['{', '}'], [0, 60]],
  ['pairs of brackets', ['{}', '[]', '{"a":', '[', ']', '}', ','], 5, ['[', ']'], [0, 61]],
] as const)(
  'T-20 of all short texts of %s the kernel takes what JSON takes, and nothing else',
  (_, pieces, longest, around, shifts) => {
    expect(misread(textsOf(pieces, longest), around, shifts)).toEqual([])
  },
  TEXTS_MS,
)

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test('T-20 a message with a control character between two tokens is refused, however long it is', () => {
  const message = (length: number): Buffer =>
    Buffer.from(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[\u0001],"b":"${'x'.repeat(length)}"}}}`,
    )
  for (const length of [0, 1_000, 100_000]) expect(() => readHostMessage(message(length), LIMITS)).toThrow('unexpected character')
})

test('two values that are skipped in turns do not meet', () => {
  const [one, other] = [new ValueSkip(kernelOf()), new ValueSkip(kernelOf())]
  expect(one.push(Buffer.from('{"a":"'), 0)).toBe(MORE)
  expect(other.push(Buffer.from('[[['), 0)).toBe(MORE)
  expect(kernelOf().valueEnd(Buffer.from('[]'), 0, NO_LIMITS, CHECK_NOTHING)).toBe(2)
  expect(one.push(Buffer.from(']"}'), 0)).toBe(3)
  expect(other.push(Buffer.from(']]]'), 0)).toBe(3)
})

test('T-24 what is too deep for the kernel is left to the scanner, which takes it', () => {
  const deep = Buffer.from(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  expect(kernelOf().valueEnd(deep, 0, NO_LIMITS, CHECK_NOTHING)).toBe(DOUBT)
  expect(readServerMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"x":${deep.toString()}}}`)).kind).toBe('response')
})

test('T-24 a mistake at the end of what is deep and long costs two readings, not one for each level', () => {
  const bytes = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"x":${'[0,'.repeat(400)}"${'\\"x'.repeat(100_000)}"}}`)
  const reading = vi.spyOn(kernelOf(), 'valueEnd')
  expect(() => readServerMessage(bytes)).toThrow(EnvelopeError)
  expect(reading).toHaveBeenCalledOnce()
  reading.mockRestore()
})

const LIMITS = { maxDepth: 10, maxValues: 1_000, maxKeysPerObject: 20 }
test.each([
  ['max_depth', '['.repeat(12) + ']'.repeat(12)],
  ['max_values', `[${'0,'.repeat(1_000)}0]`],
  ['max_keys', `{${Array.from({ length: 21 }, (_, at) => `"k${at}":0`).join()}}`],
])('T-20 a host message over %s is refused in the same words, however long it is', (name, value) => {
  const message = (text: string): Buffer =>
    Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":${value},"b":"${text}"}}}`)
  const words = (text: string): string => {
    try {
      readHostMessage(message(text), LIMITS)
      return 'taken'
    } catch (error) {
      return String(error)
    }
  }
  expect(words('')).toContain(`listen.limits.${name} (`)
  expect(words('x'.repeat(10_000))).toBe(words(''))
})

test.each([
  ['an object over several blocks', (keys: number) => `{${members(keys)}}`],
  ['one among others', (keys: number) => `[{"a":1},{${members(keys)}},{"a":1}]`],
  ['one with objects in it', (keys: number) => `[{${members(keys, '{"a":{}}')}}]`],
  ['one that others enclose', (keys: number) => `{"a":1,"b":{${members(keys)}},"c":{"d":2}}`],
])('T-20 the kernel counts the keys of %s', (_, text) => {
  const outcomes: string[] = []
  for (const maxKeysPerObject of [63, 64, 65, 100, 200])
    for (const more of [0, 1])
      for (let shift = 0; shift < 64; shift++) {
        const bytes = Buffer.from(text(maxKeysPerObject + more).replace(':', `:${' '.repeat(shift)}`))
        const end = kernelOf().valueEnd(bytes, 0, { ...NO_LIMITS, maxKeysPerObject }, CHECK_ALL)
        if (end !== (more === 0 ? bytes.length : DOUBT)) outcomes.push(`${maxKeysPerObject} + ${more} at ${shift}: ${end}`)
      }
  expect(outcomes).toEqual([])
})
const members = (count: number, value = '1'): string => Array.from({ length: count }, (_, at) => `"${at}":${value}`).join()

test.each([
  [
    'values',
    (most: number) => ({ ...NO_LIMITS, maxValues: 2 * most + 1 }),
    (count: number) => `[${'{"a":[]},'.repeat(count - 1)}{"a":[]}]`,
  ],
  [
    'levels',
    (most: number) => ({ ...NO_LIMITS, maxDepth: most }),
    (count: number) => `[[],${'{"a":'.repeat(count - 2)}{}${'}'.repeat(count - 2)},[]]`,
  ],
])('T-20 the kernel counts %s', (_, limits, text) => {
  for (let most = 2; most < 100; most++) {
    const [right, over] = [Buffer.from(text(most)), Buffer.from(text(most + 1))]
    expect(kernelOf().valueEnd(right, 0, limits(most), CHECK_ALL)).toBe(right.length)
    expect(kernelOf().valueEnd(over, 0, limits(most), CHECK_ALL)).toBe(DOUBT)
  }
})

test('where WebAssembly is missing there is no kernel, and the scanner does without', async () => {
  const program = `
    import { Kernel } from './src/wire/kernel/kernel.ts'
    import { readServerMessage } from './src/wire/message/envelope.ts'
    // Not before: Node needs it to read the lines above.
    delete globalThis.WebAssembly
    const text = '\\\\"'.repeat(10_000)
    const message = readServerMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + text + '"}]}}'))
    process.stdout.write(String(Kernel.shared) + ' ' + message.result.raw('content').length)`
  const args = ['--input-type=module-typescript', '-e', program]
  const root = new URL('../../..', import.meta.url)
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
  expect(stdout).toBe('undefined 20027')
})

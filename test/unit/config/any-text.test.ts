import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseText } from '../../../src/config/syntax/document.ts'
import { blankComments } from '../../../src/config/syntax/json-comments.ts'
import { normaliseKey, SERVER_KEY } from '../../../src/config/schema/server-key.ts'
import { plain } from '../../../src/config/syntax/tree.ts'
import { ConfigError } from '../../../src/config/syntax/problems.ts'
import { formatDuration, formatSize, parseDuration, parseSize } from '../../../src/config/schema/units.ts'
import { workspace } from './workspace.ts'

const words = fc.constantFrom(
  'servers:',
  'a:',
  '  ',
  '\n',
  '- ',
  '{',
  '}',
  '[',
  ']',
  ': ',
  ', ',
  '"',
  "'",
  '&a ',
  '*a',
  '<<: ',
  '!!binary ',
  '? ',
  '| ',
  '---\n',
  '...',
  '#',
  'command: x',
  'url: http://x',
  'include: [',
  '__proto__: ',
  '${',
  '${A}',
  '}',
  '\t',
  '\u0000',
  '\uFEFF',
  '// c\n',
  '/*',
  'mcpServers',
  'listen: ',
  '1e999',
  '30s',
  '%YAML 1.2\n',
)
const broken = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.array(words, { maxLength: 40 }).map((parts) => parts.join('')),
)

// Seconds of work, which a busy machine stretches to many.
describe('whatever a file holds', { timeout: 120_000 }, () => {
  test('T-12 loading ends with a configuration or a ConfigError, and with nothing else', async () => {
    await using files = await workspace({})
    await fc.assert(
      fc.asyncProperty(broken, fc.constantFrom('a.yaml', 'a.json', 'a'), async (text, name) => {
        await files.write(name, text)
        await files.load(name).catch((error: unknown) => {
          expect(error).toBeInstanceOf(ConfigError)
          expect((error as ConfigError).problems.length).toBeGreaterThan(0)
        })
      }),
      { numRuns: 500 },
    )
  })

  test('T-12 of any document of the right form, a process gets exactly the configured words', async () => {
    await using files = await workspace({})
    const word = fc.string({ unit: 'binary', maxLength: 30 }).filter((text) => !/[\0]|\$\{|[\uD800-\uDFFF]/.test(text))
    await fc.assert(
      fc.asyncProperty(fc.array(word, { maxLength: 5 }), async (args) => {
        await files.write('trunkline.json', JSON.stringify({ servers: { a: { command: 'x', args } } }))
        expect((await files.load('trunkline.json')).servers[0]?.launch?.args).toEqual(args)
      }),
      { numRuns: 200 },
    )
  })

  test('ten thousand brackets, and a laughing alias, end in an error', () => {
    expect(parseText('['.repeat(10_000), 'a.yaml').problems).not.toHaveLength(0)
    const laughs = Array.from(
      { length: 12 },
      (_, index) => `l${index + 1}: &l${index + 1} [${Array(10).fill(`*l${index}`).join(', ')}]`,
    )
    const { problems } = parseText(`l0: &l0 x\n${laughs.join('\n')}`, 'a.yaml')
    expect(problems).toEqual([expect.objectContaining({ message: 'more than 100000 values' })])
  })

  test('JSON parses as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(undefined, 2, '\t'), (value, indent) => {
        const { tree, problems } = parseText(JSON.stringify({ value }, undefined, indent), 'a.json')
        expect(problems).toEqual([])
        expect(JSON.stringify(plain(tree))).toBe(JSON.stringify({ value }))
      }),
    )
  })

  test('blanking comments moves no character and leaves strings alone', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('"//"', '"/* \\" */"', '// x', '/* a\nb */', '\n', '\t', '1', ','), { maxLength: 30 }),
        (parts) => {
          const text = parts.join('')
          const blank = blankComments(text)
          expect(blank).toHaveLength(text.length)
          expect([...blank.matchAll(/\n/g)].map(({ index }) => index)).toEqual(
            [...text.matchAll(/\n/g)].map(({ index }) => index),
          )
        },
      ),
    )
    expect(blankComments('{"a": "//x", /* y */ "b": 1 // z\n}')).toBe('{"a": "//x",         "b": 1     \n}')
  })

  test('any text becomes a key that follows the rule, and no two become one', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { maxLength: 40 }), (names) => {
        const keys = new Set<string>()
        for (const name of names) keys.add(normaliseKey(name, (key) => keys.has(key)))
        expect(keys.size).toBe(names.length)
        for (const key of keys) expect(key).toMatch(SERVER_KEY)
      }),
    )
  })

  test('durations and sizes are written as they are read', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 31 - 1 }), (amount) => {
        expect(parseDuration(formatDuration(amount))).toBe(amount)
        expect(parseSize(formatSize(amount))).toBe(amount)
      }),
    )
    expect(['500ms', '30s', '5m', '1h', '1.5h', '5', 5, '1d', '-1s', ''].map(parseDuration)).toEqual([
      500,
      30_000,
      300_000,
      3_600_000,
      5_400_000,
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect(['64KiB', '4MiB', '16MB', '1B', '1.5kB', '4', '4 MiB', '4M'].map(parseSize)).toEqual([
      65_536,
      4_194_304,
      16_000_000,
      1,
      1_500,
      undefined,
      undefined,
      undefined,
    ])
  })
})

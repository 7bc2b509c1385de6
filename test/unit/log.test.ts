/** What strangers say cannot forge a line of the log, nor drive the terminal it is read on (RELIABILITY T-15). */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { columns } from '../../src/commands/terminal/table.ts'
import { createLog, printable } from '../../src/log.ts'
import { corpus } from '../support/corpus.ts'

const strange = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '\n{"level":60}',
    '\r\n',
    '\u2028',
    '\u2029',
    '\u0085',
    '\x1b[2J',
    '\x9b1A',
    '\u202e',
    '\b\b',
    '\u{e0041}',
    '\ud800',
    '\0',
  ),
)
/** Line ends of any reader, terminal commands, direction marks. */
const UNSAFE = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/

test.each(['json', 'pretty'] as const)('T-15 one event is one line of the log (%s), whatever is in it', (format) => {
  fc.assert(
    fc.property(strange, strange, strange, (text, fact, server) => {
      const written: string[] = []
      const log = createLog({ level: 'info', format }, { write: (line: string) => written.push(line) } as never)
      log.info({ server, fact, deep: { fact: [fact] } }, text)
      expect(written).toHaveLength(1)
      expect(written[0]!.indexOf('\n')).toBe(written[0]!.length - 1)
      expect(written[0]).not.toMatch(UNSAFE)
      if (format !== 'pretty') expect((JSON.parse(written[0]!) as { msg: string }).msg).toBe(text)
    }),
    { numRuns: 500 },
  )
})
test('T-15 what is printed for people holds no commands to a terminal and breaks no column', () => {
  const texts = (corpus('texts') as { poisoned: [string, string][] }).poisoned.map(([, text]) => text)
  for (const text of texts) {
    expect(printable(text)).not.toMatch(UNSAFE)
    expect(columns([[text, 'x']])[0]).not.toMatch(UNSAFE)
    expect(columns([[text, 'x']])).toHaveLength(1)
  }
  expect(printable('👩‍💻 é עברית')).toBe('👩‍💻 é עברית')
  // As a person can type it again in JavaScript.
  expect(printable('a\0b\u202ec\u{e0041}d')).toBe('a\\u0000b\\u202ec\\u{e0041}d')
})

/** What strangers say cannot forge a line of the log, nor drive the terminal it is read on (RELIABILITY T-15). */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { columns } from '../../src/commands/terminal/table.ts'
import { createLog, escapeJson, printable } from '../../src/log.ts'
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

describe('a line for people', () => {
  const lines = (write: (log: ReturnType<typeof createLog>) => void, isTTY?: boolean): string[] => {
    const written: string[] = []
    const stream = { write: (line: string) => written.push(line), ...(isTTY !== undefined && { isTTY }) } as never
    write(createLog({ level: 'trace', format: isTTY === undefined ? 'pretty' : 'auto' }, stream))
    return written.map((line) => line.replace(/^\d\d:\d\d:\d\d /, 'at '))
  }

  test('names its level, its server, its text and its facts', () => {
    expect(
      lines((log) => {
        log.trace('a')
        log.debug({ server: 'one' }, 'b')
        log.info({ text: 'word', list: [1, 'x'] }, 'c')
        log.warn({ server: 'one', count: 2 }, 'd')
        log.error('e')
        log.fatal('f')
      }),
    ).toEqual([
      'at trace a\n',
      'at debug one: b\n',
      'at info c text=word list=[1,"x"]\n',
      'at warn one: d count=2\n',
      'at error e\n',
      'at fatal f\n',
    ])
  })

  test('is written with `auto` where the stream is a terminal, and there alone', () => {
    expect(lines((log) => log.info('a'), true)).toEqual(['at info a\n'])
    expect(lines((log) => log.info('a'), false)[0]).toMatch(/^\{"level":30,.*"msg":"a"\}\n$/)
  })

  test('has the time of the day', () => {
    const [line = ''] = (() => {
      const written: string[] = []
      createLog({ level: 'info', format: 'pretty' }, { write: (text: string) => written.push(text) } as never).info('a')
      return written
    })()
    const [hours, minutes] = line.split(/[: ]/).map(Number)
    const minutesOfDay = (hours ?? NaN) * 60 + (minutes ?? NaN)
    const now = new Date()
    expect((now.getUTCHours() * 60 + now.getUTCMinutes() - minutesOfDay + 1_440) % 1_440).toBeLessThan(5)
  })
})

test('F-26 a log that is not read drops lines beyond a mebibyte, and then says how many', () => {
  const written: string[] = []
  const stream = { write: (line: string) => written.push(line), writableLength: 1024 * 1024 }
  const log = createLog({ level: 'info', format: 'json' }, stream as never)
  log.info('still kept')
  stream.writableLength++
  log.info('dropped')
  log.info('dropped, too')
  expect(written).toHaveLength(1)
  stream.writableLength = 0
  log.info('kept again')
  log.info('and again')
  const facts = written.map((line) => JSON.parse(line) as { level: number; msg: string; dropped?: number; time: number })
  expect(facts.map(({ level, msg, dropped }) => [level, msg, dropped])).toEqual([
    [30, 'still kept', undefined],
    [40, 'the log was not read: lines were dropped', 2],
    [30, 'kept again', undefined],
    [30, 'and again', undefined],
  ])
  expect(Math.abs(Date.now() - (facts[1]?.time ?? 0))).toBeLessThan(60_000)
})

test('JSON stays on one line, with hidden characters as JSON escapes them', () => {
  expect(escapeJson('{"a":\n\t"b\u202e\u{e0041}",\r"c":"é"}')).toBe('{"a":  "b\\u202e\\udb40\\udc41", "c":"é"}')
})

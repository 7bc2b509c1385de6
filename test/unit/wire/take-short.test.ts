/** The fast path for content blocks of one short text. */
import { expect, test } from 'vitest'
import { Scanner } from '../../../src/wire/json/scan.ts'

const BEGINNING = Buffer.from('{"type":"text","text":"')

test.each([
  ['a short text', '{"type":"text","text":"ok"},', true],
  ['no text', '{"type":"text","text":""},', true],
  ['an escape', String.raw`{"type":"text","text":"a\nb"},`, false],
  ['an escaped quote before a brace', String.raw`{"type":"text","text":"a\"},`, false],
  ['a control character', '{"type":"text","text":"a\tb"},', false],
  ['a further member', '{"type":"text","text":"ok","_meta":{}},', false],
  ['another beginning', '{"type":"text", "text":"ok"},', false],
  ['a long text', `{"type":"text","text":"${'x'.repeat(10_000)}"},`, false],
  ['no end', '{"type":"text","text":"ok', false],
])('%s', (_, text, isTaken) => {
  const scanner = new Scanner(Buffer.from(text))
  expect([scanner.takeShort(BEGINNING), scanner.position]).toEqual([isTaken, isTaken ? text.length - 1 : 0])
})

/** A text is the same without its escapes, however its characters are escaped. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { unescape } from '../../../src/values/unescape.ts'

const json = (character: string): string => JSON.stringify(character).slice(1, -1)
/** Escapes that libraries choose character by character. */
const SPELLINGS: readonly ((character: string) => string)[] = [
  json,
  (character) => (character === '/' ? '\\/' : json(character)),
  (character) =>
    /[\w.\\-]/.test(character)
      ? json(character)
      : [...Buffer.from(character, 'utf16le').swap16().toString('hex').matchAll(/.{4}/g)].map(([unit]) => `\\u${unit}`).join(''),
]

test('every mix of escapes has the same text, also where it is escaped once more', () => {
  const character = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((one) => !/[\n\r\t\b\f]/.test(one))
  const mixed = fc.array(fc.tuple(character, fc.nat(SPELLINGS.length - 1))).map((all) => ({
    text: all.map(([one]) => one).join(''),
    written: all.map(([one, at]) => SPELLINGS[at]!(one)).join(''),
  }))
  fc.assert(
    fc.property(mixed, ({ text, written }) => {
      // Of `%41` in the text itself it is not known whether it is an escape.
      fc.pre(!/%[\da-f]{2}|\\u[\da-f]{4}/i.test(text))
      for (const form of [written, json(written), encodeURIComponent(written), encodeURIComponent(encodeURIComponent(written))])
        expect(unescape(form).text).toBe(unescape(text).text)
    }),
  )
})

test.each([
  ['plain', 'plain', [1, 2, 3, 4, 5]],
  ['a\\"b', 'a"b', [1, 3, 4]],
  ['\\\\u00e4%5C%2e', 'ä.', [7, 13]],
  ['%C3%A4%2525x', 'ä%x', [6, 11, 12]],
  ['a+%2B', 'a  ', [1, 2, 5]],
  ['100%', '100%', [1, 2, 3, 4]],
  ['', '', []],
])('%j is %j, and each character has its end', (written, text, ends) => {
  const unescaped = unescape(written)
  expect(unescaped.text).toBe(text)
  expect([...unescaped.ends.subarray(0, text.length)]).toEqual(ends)
})

/** Characters that a person does not see (RELIABILITY T-16), on texts kept under `test/corpus`. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { describeHidden, stripEntry } from '../../../src/catalog/curate/vetting.ts'
import { findHidden, stripHidden } from '../../../src/wire/protocol/hidden-characters.ts'
import { corpus } from '../../support/corpus.ts'

const { poisoned, clean } = corpus('texts') as { poisoned: [kind: string, text: string][]; clean: string[] }
const definition = (text: string): Buffer =>
  Buffer.from(JSON.stringify({ name: 'x', inputSchema: { properties: { a: { enum: [text] } } } }))

describe('T-16', () => {
  test('of 220 poisoned texts all are found, of 210 honest ones in 40 scripts none is accused', () => {
    expect([poisoned.length, clean.length]).toEqual([220, 210])
    expect(poisoned.filter(([, text]) => findHidden(text).length === 0)).toEqual([])
    expect(clean.filter((text) => findHidden(text).length > 0)).toEqual([])
  })
  test('the same deep in a schema, escaped or not, and as the name of a member', () => {
    const escaped = (raw: Buffer): Buffer =>
      Buffer.from(raw.toString().replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`))
    const named = (text: string): Buffer => Buffer.from(JSON.stringify({ [text]: 1 }))
    for (const form of [definition, (text: string) => escaped(definition(text)), named, (text: string) => escaped(named(text))]) {
      expect(poisoned.filter(([, text]) => describeHidden(form(text)) === undefined)).toEqual([])
      expect(clean.filter((text) => describeHidden(form(text)) !== undefined)).toEqual([])
    }
  })
  test('what is stripped leaves nothing to find, what is honest stays, and no other byte of a definition changes', () => {
    for (const [, text] of poisoned) {
      expect(findHidden(stripHidden(text))).toEqual([])
      expect(JSON.parse(stripEntry(definition(text)).toString())).toEqual(JSON.parse(definition(stripHidden(text)).toString()))
    }
    for (const text of clean) expect(stripHidden(text)).toBe(text)
    const spaced = Buffer.from('{ "name" : "x" , "n":1.0,"big":12345678901234567890, "e":"\\u0041", "t":"a\\u200bb" }')
    expect(stripEntry(spaced).toString()).toBe('{ "name" : "x" , "n":1.0,"big":12345678901234567890, "e":"\\u0041", "t":"ab" }')
  })
  test('it names what it found', () => {
    expect(describeHidden(Buffer.from(JSON.stringify({ name: 'x', description: 'a\u{e0041}\u{e0042}b\u202e' })))).toBe(
      'description hides 2 tag characters (U+E0041 …); description hides 1 bidi character (U+202E)',
    )
  })
  test('any text: stripped once is stripped for good, and the visible rest stays in its order', () => {
    const tricky = fc.constantFrom(
      '\u{e0041}',
      '\u200d',
      '\u200b',
      '🙂',
      '\ufe0f',
      'a',
      'ا',
      '\u202e',
      '\ud83d',
      '\x1b',
      '👩',
      ' ',
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.array(tricky).map((list) => list.join('')),
        ),
        (text) => {
          let clean = stripHidden(text)
          // Neighbours that were kept apart may meet; that ends.
          for (let next = stripHidden(clean); next !== clean; next = stripHidden(clean)) clean = next
          expect(findHidden(clean)).toEqual([])
          const letters = (of: string): string => of.replaceAll(/[^a-zA-Z0-9]/g, '')
          expect(letters(clean)).toBe(letters(text))
        },
      ),
    )
  })
})

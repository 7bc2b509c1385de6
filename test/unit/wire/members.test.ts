import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonical } from '../../../src/wire/message/canonical.ts'
import { cleanLabel, cleanMessage } from '../../../src/wire/protocol/label.ts'
import { cutMembers, edited, elementsAt, membersAt } from '../../../src/wire/message/members.ts'

describe('members of a payload', () => {
  test('repeated and escaped keys are all listed', () => {
    const bytes = Buffer.from(' { "a" : 1 ,"\\u0061":[2], "b":{} } ')
    expect(membersAt(bytes, 0).map((member) => [member.key, bytes.toString('utf8', member.start, member.end)])).toEqual([
      ['a', '1'],
      ['a', '[2]'],
      ['b', '{}'],
    ])
    expect(membersAt(Buffer.from('[1]'), 0)).toEqual([])
    expect(elementsAt(Buffer.from('{}'), 0)).toEqual([])
  })

  test('any members can be cut, and what is left is JSON with the others in order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('keep', 'cut'), fc.jsonValue())),
        fc.constantFrom('', ' ', '\n\t'),
        (pairs, gap) => {
          const print = (some: [string, unknown][]): string =>
            `{${gap}${some.map(([key, value]) => `"${key}"${gap}:${gap}${JSON.stringify(value)}`).join(`${gap},${gap}`)}${gap}}`
          const bytes = Buffer.from(print(pairs))
          const left = edited(
            bytes,
            cutMembers(membersAt(bytes, 0), (member) => member.key === 'cut'),
          )
          expect(membersAt(left, 0).map((member) => left.toString('utf8', member.start, member.end))).toEqual(
            pairs.filter(([key]) => key === 'keep').map(([, value]) => JSON.stringify(value)),
          )
          expect(() => JSON.parse(left.toString())).not.toThrow()
        },
      ),
    )
  })
})

test('B019 canonical text keeps number text and depends on nothing but what is said', () => {
  expect(canonical(Buffer.from(' {"b":[1.0, -0,1e400] , "a":"\\u0041\\/"}'))).toBe('{"a":"A/","b":[1.0,-0,1e400]}')
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const [dense, airy] = [JSON.stringify(value), JSON.stringify(value, undefined, 2)]
      expect(canonical(Buffer.from(airy))).toBe(canonical(Buffer.from(dense)))
    }),
  )
})

test('B261 labels lose control and bidi characters, messages keep their line feeds', () => {
  expect(cleanLabel('a\u202Eb\u2028\n\u0000\u009b\u200fc é😀')).toBe('abc é😀')
  expect(cleanMessage('a\u2066\r\nb\u0007\n')).toBe('a\nb\n')
})

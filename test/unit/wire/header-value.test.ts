import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeHeaderValue, encodeHeaderValue } from '../../../src/wire/headers/header-value.ts'

describe('encoding a header value', () => {
  test.each([
    ['us-west1', 'us-west1'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    ['\ttab at the edge', '=?base64?CXRhYiBhdCB0aGUgZWRnZQ==?='],
    ['tab\tinside', 'tab\tinside'],
    ['=?BASE64?literal?=', '=?BASE64?literal?='],
    ['', ''],
  ])('B219 %j is written as the specification shows', (text, value) => {
    expect(encodeHeaderValue(text)).toBe(value)
    expect(decodeHeaderValue(value)).toBe(text)
  })

  test('B219 any text comes back, and what is sent is always a safe field value', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' })), (any) => {
        const text = any.toWellFormed()
        const value = encodeHeaderValue(text)
        expect(value).toMatch(/^[\x20-\x7e\t]*$/)
        expect(value).toBe(value.trim())
        expect(decodeHeaderValue(value)).toBe(text)
      }),
    )
  })
})

describe('decoding a header value', () => {
  test.each([
    ['no padding', '=?base64?SGVsbG8?='],
    ['a character outside the alphabet', '=?base64?SGV$bG8=?='],
    ['the URL alphabet', '=?base64?_-8=?='],
    ['white space inside', '=?base64?SGVs bG8=?='],
    ['bits set behind the end', '=?base64?SGVsbG9=?='],
    ['bytes that are not UTF-8', '=?base64?/w==?='],
    ['a prefix that is also the suffix', '=?base64?='],
    ['raw characters above ASCII', 'caf\u00e9'],
    ['a control character', 'a\u0000b'],
    ['edge white space', ' a'],
  ])('B192 refuses %s', (_what, value) => {
    expect(decodeHeaderValue(value)).toBeUndefined()
  })
})

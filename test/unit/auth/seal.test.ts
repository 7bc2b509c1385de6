import { createHash, randomBytes } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Seal } from '../../../src/auth/seal.ts'

const key = (name: string): Buffer => createHash('sha256').update(name).digest()
const seal = new Seal({ keys: [key('one')] })

describe('sealed tokens', () => {
  test('what was sealed comes back, and the token shows none of it', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const json = JSON.parse(JSON.stringify(value)) as object
        expect(seal.open('p', seal.seal('p', value))).toEqual(json)
      }),
    )
    expect(Buffer.from(seal.seal('p', { secret: 'open sesame' }), 'base64url').includes('sesame')).toBe(false)
    expect(seal.seal('p', { a: 1 })).not.toBe(seal.seal('p', { a: 1 }))
  })

  test('T-06 a flipped bit in any byte of 1,000 tokens is refused', () => {
    for (let at = 0; at < 1000; at++) {
      const bytes = Buffer.from(seal.seal('cursor', { at, text: 'x'.repeat(at % 7) }), 'base64url')
      for (let byte = 0; byte < bytes.length; byte++) {
        const bit = 1 << ((at + byte) % 8)
        bytes[byte]! ^= bit
        if (seal.open('cursor', bytes.toString('base64url')) !== undefined) expect.fail(`byte ${byte} of token ${at}`)
        bytes[byte]! ^= bit
      }
      expect(seal.open('cursor', bytes.toString('base64url'))).toMatchObject({ at })
    }
  })

  test('T-06 another spelling of the same bytes is refused', () => {
    const token = seal.seal('p', { a: 12 })
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    for (let at = 0; at < token.length; at++) {
      for (const other of ['=', ' ', '+', '\n', alphabet[(alphabet.indexOf(token[at]!) + 1) % 64]])
        expect(seal.open('p', token.slice(0, at) + other + token.slice(at + 1))).toBeUndefined()
    }
    for (const other of [`${token}=`, ` ${token}`, `${token}\n`, token.slice(0, -1), '', 'AQ'])
      expect(seal.open('p', other)).toBeUndefined()
  })

  test('T-06 another purpose, group or key opens nothing', () => {
    const token = seal.seal('cursor', {})
    expect(seal.open('requestState', token)).toBeUndefined()
    expect(new Seal({ keys: [key('one')], group: 'other' }).open('cursor', token)).toBeUndefined()
    expect(new Seal({ keys: [key('two')] }).open('cursor', token)).toBeUndefined()
  })

  test('T-06 a token opens until it expires', () => {
    let now = 1_000
    const timed = new Seal({ keys: [key('one')], now: () => now })
    const token = timed.seal('p', { a: 1 }, 500)
    now = 1_499
    expect(timed.open('p', token)).toEqual({ a: 1 })
    now = 1_500
    expect(timed.open('p', token)).toBeUndefined()
  })

  test('T-06 after a rotation old tokens open while their key is in the ring', () => {
    const old = seal.seal('p', { a: 1 })
    const rotated = new Seal({ keys: [key('two'), key('one')] })
    expect(rotated.open('p', old)).toEqual({ a: 1 })
    expect(seal.open('p', rotated.seal('p', {}))).toBeUndefined()
    expect(new Seal({ keys: [key('two')] }).open('p', old)).toBeUndefined()
  })

  test('a key of another length is refused', () => {
    expect(() => new Seal({ keys: [randomBytes(16)] })).toThrow(RangeError)
    expect(() => new Seal({ keys: [] })).toThrow(RangeError)
  })
})

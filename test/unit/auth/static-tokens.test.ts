import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { digestOf, hashLine, makeToken, readHash, StaticTokens } from '../../../src/auth/inbound/static-tokens.ts'
import { staticToken, tokenOf } from '../../support/credentials.ts'

test('T-31 a new token has 32 random bytes, and no two are the same', () => {
  const tokens = Array.from({ length: 100 }, makeToken)
  expect(new Set(tokens).size).toBe(100)
  for (const token of tokens) {
    expect(token).toMatch(/^tlk_[\w-]{43}$/)
    expect(Buffer.from(token.slice(4), 'base64url').length).toBe(32)
  }
})

test('what is kept of a token is its SHA-256', () => {
  const digest = createHash('sha256').update('tlk_x').digest()
  expect(digestOf('tlk_x')).toEqual(digest)
  expect(hashLine('tlk_x')).toBe(`sha256:${digest.toString('hex')}`)
  expect(readHash(hashLine('tlk_x'))).toBe(digest.toString('hex'))
  for (const text of ['tlk_x', digest.toString('hex'), `sha256:${digest.toString('base64url')}`, `${hashLine('tlk_x')}0`, ''])
    expect(readHash(text), text).toBeUndefined()
})

test('T-31 each token is found by its digest, first or last, and nothing else is', () => {
  const tokens = new StaticTokens(['A', 'B', 'C'].map((letter) => staticToken(letter)))
  for (const letter of ['A', 'B', 'C'])
    expect(tokens.find(digestOf(tokenOf(letter)))?.identity).toEqual({
      principal: `token:${letter}`,
      toolsets: undefined,
      scopes: undefined,
    })
  for (const text of ['', 'A', tokenOf('D'), `${tokenOf('A')} `]) expect(tokens.find(digestOf(text))).toBeUndefined()
})

import { expect, test } from 'vitest'
import type { Admitted } from '../../../src/auth/identity.ts'
import { CredentialCache, REMEMBERED_MS } from '../../../src/auth/inbound/credential-cache.ts'
import { digestOf } from '../../../src/auth/inbound/static-tokens.ts'

const admitted = (principal: string, untilMs = Infinity): Admitted => ({
  identity: { principal, toolsets: undefined, scopes: undefined },
  untilMs,
  audiences: undefined,
})

test('a credential is known for a minute, and never longer than it is good', () => {
  const known = new CredentialCache()
  const [long, short] = [digestOf('long'), digestOf('short')]
  known.set(long, admitted('l'), 1_000)
  known.set(short, admitted('s', 11_000), 1_000)
  expect(known.find(long, 1_000)).toBeDefined()
  expect([known.find(long, 10_999), known.find(short, 10_999)]).toMatchObject([
    { identity: { principal: 'l' } },
    { identity: { principal: 's' } },
  ])
  expect(known.find(short, 11_000)).toBeUndefined()
  expect(known.find(long, 1_000 + REMEMBERED_MS - 1)).toBeDefined()
  expect(known.find(long, 1_000 + REMEMBERED_MS)).toBeUndefined()
})

test('F-27 a clock that is set back prolongs nothing', () => {
  const known = new CredentialCache()
  known.set(digestOf('a'), admitted('a'), 3_600_000)
  expect(known.find(digestOf('a'), 3_600_001)).toBeDefined()
  expect(known.find(digestOf('a'), 3_599_000)).toBeUndefined()
  expect(known.find(digestOf('a'), 0)).toBeUndefined()
})

test('what is verified again takes its old place', () => {
  const known = new CredentialCache(4)
  for (let round = 0; round < 10; round++)
    for (const name of ['a', 'b', 'c', 'd']) known.set(digestOf(name), admitted(name), round)
  for (const name of ['a', 'b', 'c', 'd']) expect(known.find(digestOf(name), 10)?.identity.principal).toBe(name)
})

test('what is verified again is known for another minute', () => {
  const known = new CredentialCache()
  known.set(digestOf('a'), admitted('a'), 0)
  known.set(digestOf('a'), admitted('b'), REMEMBERED_MS)
  expect(known.find(digestOf('a'), REMEMBERED_MS)?.identity.principal).toBe('b')
  expect(known.find(digestOf('a'), 2 * REMEMBERED_MS)).toBeUndefined()
})

test('where all places are taken, what ends first gives way; nobody is ever taken for another', () => {
  const known = new CredentialCache(64)
  for (let at = 0; at < 10_000; at++) known.set(digestOf(String(at)), admitted(String(at)), at)
  let kept = 0
  for (let at = 0; at < 10_000; at++) {
    const found = known.find(digestOf(String(at)), 10_000)
    if (found === undefined) continue
    kept++
    expect(found.identity.principal).toBe(String(at))
  }
  expect(kept).toBe(64)
  expect(known.find(digestOf('9999'), 10_000)).toBeDefined()
})

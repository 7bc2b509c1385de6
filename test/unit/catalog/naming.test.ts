import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { exposeNames } from '../../../src/catalog/names/naming.ts'
import { ALWAYS, NEVER, serverOf } from './fixtures.ts'

const nameOf = (original: string, key = 'fs', maxNameLength = 48): string | undefined =>
  exposeNames(serverOf(key), [original], { ...ALWAYS, maxNameLength }).get(original)

describe('exposed names', () => {
  test('B160 a plain name is prefixed and nothing else', () => {
    expect(nameOf('read_file')).toBe('fs__read_file')
    expect(nameOf('a__b', 'x')).toBe('x__a__b')
  })

  test('B159 other characters become underscores and a hash keeps names apart', () => {
    expect(nameOf('read file')).toMatch(/^fs__read_file_[a-z2-7]{8}$/)
    expect(nameOf('read.file')).toMatch(/^fs__read_file_[a-z2-7]{8}$/)
    expect(nameOf('read file')).not.toBe(nameOf('read.file'))
    expect(nameOf('日本😀')).toMatch(/^fs______[a-z2-7]{8}$/)
  })

  test('B162 a long name is cut to the maximum, the same after every restart', () => {
    expect(nameOf('x'.repeat(200))).toBe(`fs__${'x'.repeat(35)}_x4zoxmvw`)
    expect(nameOf('x'.repeat(44))).toBe(`fs__${'x'.repeat(44)}`)
  })

  test('B162 the name that was short enough keeps its place, the shortened one takes a longer hash', () => {
    const shortened = nameOf('a b', 'k') ?? ''
    const literal = shortened.slice('k__'.length)
    for (const originals of [
      ['a b', literal],
      [literal, 'a b'],
    ]) {
      const names = exposeNames(serverOf('k'), originals, ALWAYS)
      expect(names.get(literal)).toBe(shortened)
      expect(names.get('a b')).toMatch(/^k__a_b_[a-z2-7]{16}$/)
    }
  })

  test('B162 a name with the longer hash keeps to the least maximum, too', () => {
    const naming = { ...ALWAYS, maxNameLength: 16 }
    const shortened = nameOf('a b', 'k', 16) ?? ''
    const names = exposeNames(serverOf('k'), ['a b', shortened.slice('k__'.length)], naming)
    expect(names.get('a b')).toMatch(/^_[a-z2-7]{15}$/)
  })

  test('B162 two shortened names with one hash both take a longer one, in whatever order they come', () => {
    const spell = (bits: number): string => Array.from({ length: 24 }, (_, bit) => ((bits >> bit) & 1 ? '.' : ' ')).join('')
    const pair = [spell(454_042), spell(994_895)]
    expect(nameOf(pair[0]!, 'k')).toBe(nameOf(pair[1]!, 'k'))
    const names = exposeNames(serverOf('k'), pair, ALWAYS)
    expect(new Set(names.values()).size).toBe(2)
    expect(names).toEqual(new Map([...exposeNames(serverOf('k'), pair.toReversed(), ALWAYS)].toReversed()))
  })

  test('B159 B160 any names: within the alphabet and the maximum, all different, whoever else is listed', () => {
    const names = fc.uniqueArray(
      fc.oneof(fc.string({ unit: 'binary' }), fc.string({ maxLength: 100 }), fc.constantFrom('__proto__', 'constructor', '')),
      {
        minLength: 1,
      },
    )
    fc.assert(
      fc.property(names, fc.integer({ min: 31, max: 128 }), (originals, maxNameLength) => {
        const exposed = exposeNames(serverOf('server-key-of-20-chr'), originals, { ...ALWAYS, maxNameLength })
        expect(new Set(exposed.values()).size).toBe(originals.length)
        for (const name of exposed.values()) expect(name).toMatch(new RegExp(`^[A-Za-z0-9_-]{1,${maxNameLength}}$`))
        expect(exposed.get(originals[0]!)).toBe(nameOf(originals[0]!, 'server-key-of-20-chr', maxNameLength))
      }),
    )
  })

  test('B022 an alias is looked up among the configured ones only', () => {
    const server = serverOf('fs', { alias: { read: 'cat' } })
    const names = exposeNames(server, ['read', 'constructor', '__proto__'], ALWAYS)
    expect([...names.values()]).toEqual(['cat', 'fs__constructor', 'fs____proto__'])
  })

  test('mode never keeps every name as it is, long or odd', () => {
    const originals = ['a b', 'x'.repeat(300)]
    expect([...exposeNames(serverOf('fs'), originals, NEVER).values()]).toEqual(originals)
  })
})

/** Documents as trees: what is found in them, and how they are described in messages. */
import { describe as group, expect, test } from 'vitest'
import { ConfigError, reporterAt } from '../../../src/config/syntax/problems.ts'
import type { Problem } from '../../../src/config/syntax/problems.ts'
import {
  asTyped,
  changeChild,
  child,
  describe,
  nearest,
  plain,
  scalarTexts,
  textOf,
  treeOf,
} from '../../../src/config/syntax/tree.ts'
import type { ScalarTree } from '../../../src/config/syntax/tree.ts'

const TREE = treeOf({ a: [1, 'x', null, undefined, Symbol.iterator], 'b c': { d: true }, gone: undefined }, 'here')

group('a tree of plain data', () => {
  test('has the path of each node, the one place, and null for what JSON cannot express', () => {
    expect(plain(TREE)).toEqual({ a: [1, 'x', null, null, null], 'b c': { d: true } })
    expect(child(child(TREE, 'a'), 1)).toEqual({ kind: 'scalar', value: 'x', source: 'x', path: 'a[1]', place: 'here' })
    expect(child(child(TREE, 'b c'), 'd')).toEqual({
      kind: 'scalar',
      value: true,
      source: 'true',
      path: '"b c".d',
      place: 'here',
    })
    expect(child(child(TREE, 'a'), 2)).toMatchObject({ value: null, source: '' })
    expect([child(TREE, 'gone'), child(undefined, 'a'), child(child(child(TREE, 'a'), 1), 0)]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('is searched down to the nearest node there is, and for texts', () => {
    expect(nearest(TREE, ['a', 1]).path).toBe('a[1]')
    expect(nearest(TREE, ['a', 7, 'x']).path).toBe('a')
    expect(nearest(TREE, ['none']).path).toBe('')
    expect(scalarTexts(TREE)).toEqual(['1', 'x', '', '', '', 'true'])
    expect([textOf(child(child(TREE, 'a'), 1)), textOf(child(child(TREE, 'a'), 0)), textOf(TREE)]).toEqual([
      'x',
      undefined,
      undefined,
    ])
  })

  test('keeps numbers and booleans as they were typed, and changes only a child that is there', () => {
    const typed: ScalarTree = { kind: 'scalar', value: 1.1, source: '1.10', path: '', place: 'here' }
    expect(plain(asTyped({ kind: 'list', items: [typed], path: '', place: 'here' }))).toEqual(['1.10'])
    expect(plain(asTyped(TREE))).toEqual({ a: ['1', 'x', null, null, null], 'b c': { d: 'true' } })
    const map = treeOf({ a: 1, b: 2 }, 'here')
    if (map.kind !== 'map') throw new Error('no mapping')
    expect(plain(changeChild(map, 'b', () => treeOf(3, 'here')))).toEqual({ a: 1, b: 3 })
    expect(changeChild(map, 'c', () => treeOf(3, 'here'))).toBe(map)
  })
})

group('a node in a message', () => {
  const scalar = (changes: Partial<ScalarTree>): ScalarTree => ({
    kind: 'scalar',
    value: 'x',
    source: 'x',
    path: 'servers.a.url',
    place: 'here',
    ...changes,
  })

  test.each<[Partial<ScalarTree>, string]>([
    [{ value: 'plain' }, '"plain"'],
    [{ value: 'y'.repeat(40) }, `"${'y'.repeat(40)}"`],
    [{ value: 'y'.repeat(41) }, `"${'y'.repeat(40)}…"`],
    [{ value: null, source: '~' }, 'nothing'],
    [{ value: 1.1, source: '1.10' }, '1.10'],
    [{ value: 'https://me:secret@a.example/x@y' }, '"https://***@a.example/x@y"'],
    [{ value: 'secret', source: '${TOKEN}', variables: true }, 'what ${TOKEN} holds'],
    [{ value: 'secret', path: 'servers.a.env.TOKEN' }, 'another text'],
    [{ value: 'secret', path: 'headers.authorization' }, 'another text'],
    [{ value: 'secret', path: 'auth.tokens[0].hash' }, 'another text'],
    [{ value: 'secret', path: 'state.key' }, 'another text'],
    [{ value: 'secret', path: 'state.key[1]' }, 'another text'],
    [{ value: 12345678, source: '12345678', path: 'auth.oauth.issuers[0].client_secret' }, 'a number'],
    [{ value: 'redis://:sec/ret@host:6379/0' }, '"redis://***@host:6379/0"'],
    [{ value: 'redis://a:s@cret@host' }, '"redis://***@host"'],
    [{ value: 'https://a.example:8080/x@y' }, '"https://a.example:8080/x@y"'],
    [{ value: 'shown', path: 'servers.a.environment.x' }, '"shown"'],
  ])('%j is %s', (changes, text) => {
    expect(describe(scalar(changes))).toBe(text)
  })

  test('is not spelled out where it has nodes of its own', () => {
    expect([describe(TREE), describe(treeOf([], 'here'))]).toEqual(['a mapping', 'a list'])
  })
})

test('problems are told once each, in the order of their places, at the nearest node that the file has', () => {
  const problems: Problem[] = []
  const at = (place: string) => reporterAt(treeOf({ a: { b: 1 } }, place), problems)
  at('x.yaml:10:1')(['a', 'b'], 'is wrong', 'write it anew')
  at('x.yaml:9:12')(['a', 'none'], 'is lacking', '')
  at('x.yaml:9:2')([], 'is no file', '')
  at('x.yaml:9:2')([], 'is no file', '')
  const { message, problems: told } = new ConfigError(problems)
  expect(message.split('\n')).toEqual([
    'x.yaml:9:2: is no file',
    'x.yaml:9:12 a: is lacking',
    'x.yaml:10:1 a.b: is wrong; write it anew',
  ])
  expect(told).toHaveLength(3)
})

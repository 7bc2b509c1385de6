/** Arguments as rules see them: what two parsers could read differently is not judged (T-20). */
import { describe, expect, test } from 'vitest'
import { ANY_CHARS, decodeArguments, decodeMembers, RuleKeys, UnjudgedArguments, wholeOf } from '../../../src/policy/arguments.ts'

const KEYS = new RuleKeys(['path', 'mode', 'amount'])
const decode = (json: string): unknown => decodeArguments(Buffer.from(json), KEYS)

test('arguments are decoded, whole numbers exactly', () => {
  expect(decode('{"path":"/a","n":[1,1.5,{"x":null}],"big":9007199254740993,"e":1e400,"c:d\\"":":"}')).toEqual({
    path: '/a',
    n: [1, 1.5, { x: null }],
    big: 9007199254740993n,
    e: Infinity,
    'c:d"': ':',
  })
})

test.each([
  ['{"path":"/a","path":"/etc"}', /repeat a key/],
  ['{"path":"/a","p\\u0061th":"/etc"}', /repeat a key/],
  ['{"x":{"y":1,"y":2}}', /repeat a key/],
  ['{"__proto__":1,"__proto__":2}', /repeat a key/],
  ['{"Path":"/etc"}', /"Path" differs from "path" only in case/],
  ['{"Mode":1}', /"Mode" differs from "mode" only in case/],
  ['{"x":[{"AMOUNT":1}]}', /"AMOUNT" differs from "amount" only in case/],
  ['{"x":{"Pat\\u0068":1}}', /"Path" differs from "path" only in case/],
])('T-20 %s is not judged', (json, message) => {
  expect(() => decode(json)).toThrow(UnjudgedArguments)
  expect(() => decode(json)).toThrow(message)
})

test('T-20 keys that no rule names may be written in any case', () => {
  expect(decode('{"Name":1,"name":2,"__proto__":3}')).toHaveProperty('Name', 1)
})

test('T-20 an object with the key constructor becomes a Map, whose members the CEL library finds', () => {
  expect(decode('{"x":{"constructor":1,"path":[{"constructor":null}]}}')).toEqual({
    x: new Map<string, unknown>([
      ['constructor', 1],
      ['path', [new Map([['constructor', null]])]],
    ]),
  })
  const keys = new RuleKeys(['constructor'])
  const members = new Map([['constructor', { maxChars: ANY_CHARS, bit: 1 }]])
  const { value } = decodeMembers(wholeOf(Buffer.from('{"constructor":"x"}')), members, keys)
  expect(value).toEqual(new Map([['constructor', 'x']]))
})

test('T-20 a key with U+017F or U+212A for a letter of a rule is not judged', () => {
  const keys = new RuleKeys(['disk'])
  expect(() => decodeArguments(Buffer.from('{"di\u017fk":1}'), keys)).toThrow(/only in case/)
  expect(() => decodeArguments(Buffer.from('{"dis\u212a":1}'), keys)).toThrow(/only in case/)
})

describe('of members that rules name', () => {
  const decoded = (json: string, maxChars: number) => {
    const members = new Map([
      ['path', { maxChars, bit: 1 }],
      ['amount', { maxChars, bit: 2 }],
    ])
    return decodeMembers(wholeOf(Buffer.from(json)), members, KEYS)
  }
  const read = (json: string): unknown => decoded(json, ANY_CHARS).value

  test('nothing else is decoded', () => {
    expect(read('{"path":"/\\u0061","x":[{"y":1,"y":2}],"amount":9007199254740993,"__proto__":{"path":1}}')).toEqual({
      path: '/a',
      amount: 9007199254740993n,
    })
    expect(read('{ "x" : {"path":"/etc"} }')).toEqual({})
    expect(read('{"path":{"deep":[true,null]}}')).toEqual({ path: { deep: [true, null] } })
  })

  test('they are read where they stand in a message', () => {
    const bytes = Buffer.from('{"name":"x","arguments":{"path":"/a"},"path":"/etc"}')
    const members = new Map([['path', { maxChars: ANY_CHARS, bit: 1 }]])
    expect(decodeMembers({ bytes, start: 24, end: 37 }, members, KEYS).value).toEqual({ path: '/a' })
  })

  test('a text is decoded unless it is longer than what it is compared with, however it is written', () => {
    expect(decoded(`{"path":"${'\\u002f'.repeat(2)}"}`, 2)).toEqual({ value: { path: '//' }, likeness: undefined })
    const { value, likeness } = decoded(`{"path":"${'/'.repeat(13)}"}`, 2)
    expect(value).toEqual({ path: expect.stringMatching(/^.{3,}$/) as unknown })
    expect(likeness).toBe(1)
  })

  test('arguments are alike where the same members are missing, and the others too long', () => {
    const [long, short] = ['x'.repeat(13), 'x']
    expect(decoded(`{"other":"${short}"}`, 2).likeness).toBe(0)
    expect(decoded(`{"amount":"${long}"}`, 2).likeness).toBe(2)
    expect(decoded(`{"amount":"${long}","path":"${long}"}`, 2).likeness).toBe(3)
    for (const value of ['1', 'null', `["${long}"]`, `"${short}"`])
      expect(decoded(`{"amount":"${long}","path":${value}}`, 2).likeness).toBeUndefined()
  })

  test('T-20 a repeated key is not judged, however long its values', () => {
    const long = `"${'x'.repeat(13)}"`
    expect(() => decoded(`{"path":${long},"path":${long}}`, 2)).toThrow(/repeat a key/)
    expect(() => decoded(`{"path":${long},"Path":${long}}`, 2)).toThrow(/only in case/)
  })

  test.each([
    ['{"path":"/a","path":"/etc"}', /repeat a key/],
    ['{"path":"/a","p\\u0061th":"/etc"}', /repeat a key/],
    ['{"path":{"x":1,"x":2}}', /repeat a key/],
    ['{"x":1,"Path":"/etc"}', /"Path" differs from "path" only in case/],
    ['{"path":{"AMOUNT":1}}', /"AMOUNT" differs from "amount" only in case/],
  ])('T-20 %s is not judged', (json, message) => {
    expect(() => read(json)).toThrow(UnjudgedArguments)
    expect(() => read(json)).toThrow(message)
  })
})

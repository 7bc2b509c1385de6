/** Arguments as rules see them: what two parsers could read differently is not judged (T-20). */
import { describe, expect, test } from 'vitest'
import { decodeArguments, decodeMembers, RuleKeys, UnjudgedArguments } from '../../../src/policy/arguments.ts'

const KEYS = new RuleKeys(['path', 'amount'])
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
  ['{"x":[{"AMOUNT":1}]}', /"AMOUNT" differs from "amount" only in case/],
  ['{"x":{"Pat\\u0068":1}}', /"Path" differs from "path" only in case/],
])('T-20 %s is not judged', (json, message) => {
  expect(() => decode(json)).toThrow(UnjudgedArguments)
  expect(() => decode(json)).toThrow(message)
})

test('T-20 keys that no rule names may be written in any case', () => {
  expect(decode('{"Name":1,"name":2,"__proto__":3}')).toHaveProperty('Name', 1)
})

test('T-20 a key with U+017F or U+212A for a letter of a rule is not judged', () => {
  const keys = new RuleKeys(['disk'])
  expect(() => decodeArguments(Buffer.from('{"di\u017fk":1}'), keys)).toThrow(/only in case/)
  expect(() => decodeArguments(Buffer.from('{"dis\u212a":1}'), keys)).toThrow(/only in case/)
})

describe('of members that rules name', () => {
  const read = (json: string): unknown => decodeMembers(Buffer.from(json), new Set(['path', 'amount']), KEYS)

  test('nothing else is decoded', () => {
    expect(read('{"path":"/\\u0061","x":[{"y":1,"y":2}],"amount":9007199254740993,"__proto__":{"path":1}}')).toEqual({
      path: '/a',
      amount: 9007199254740993n,
    })
    expect(read('{ "x" : {"path":"/etc"} }')).toEqual({})
    expect(read('{"path":{"deep":[true,null]}}')).toEqual({ path: { deep: [true, null] } })
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

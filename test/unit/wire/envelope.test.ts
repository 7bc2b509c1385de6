import { expect, test } from 'vitest'
import { readHostMessage, readServerMessage } from '../../../src/wire/envelope.ts'

const LIMITS = { maxDepth: 64, maxValues: 10_000, maxKeysPerObject: 1_000 }
const request = (params: string): Buffer => Buffer.from(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`)
const keys = (count: number): string => Array.from({ length: count }, (_, index) => `"k${index}":${index}`).join()

test.each([1, 2, 31, 32, 33, 500])('T-20 T-24 a key that is repeated among %i others is refused', (count) => {
  const again = request(`{${keys(count)},"k${count - 1}":0}`)
  expect(() => readHostMessage(again, LIMITS)).toThrow(`duplicate key "k${count - 1}"`)
  expect(readHostMessage(request(`{${keys(count)}}`), LIMITS).params?.members).toHaveLength(count)
})

test('T-20 keys of a host are compared in params and in its _meta, keys of a server in its result', () => {
  expect(() => readHostMessage(request('{"_meta":{"a":1,"a":2}}'), LIMITS)).toThrow('duplicate key "a"')
  expect(() => readHostMessage(request('{"\\u006eame":"x"}'), LIMITS)).toThrow('must not be escaped')
  const result = (text: string): Buffer => Buffer.from(`{"jsonrpc":"2.0","id":7,"result":${text}}`)
  expect(() => readServerMessage(result('{"resultType":"complete","resultType":"task"}'))).toThrow('duplicate key "resultType"')
  expect(readServerMessage(result('{"_meta":{"a":1,"a":2}}')).result?.raw('_meta')?.toString()).toBe('{"a":1,"a":2}')
})

test('what is refused is named by its place', () => {
  expect(() => readHostMessage(Buffer.from('{"jsonrpc":"2.0"x'), LIMITS)).toThrow('expected "," or "}" at byte 16')
  expect(() => readHostMessage(Buffer.from('{"jsonrpc":"2.'), LIMITS)).toThrow('unterminated string at byte 14')
  expect(() => readHostMessage(Buffer.from('{"a":"\\ud80g"}'), LIMITS)).toThrow('bad \\u escape at byte 11')
})

import { expect, test } from 'vitest'
import { join, latin1Of, Payload } from '../../../src/wire/message/payload.ts'
import { requestMessage, resultMessage } from '../../../src/wire/message/message.ts'

/** Above the size up to which a payload leaves in one buffer, and below. */
test.each([10, 100, 900, 1_100, 50_000])('what is not changed beside %i bytes leaves as it came', (length) => {
  const text = 'é'.repeat(length / 2)
  const payload = Payload.at(
    Buffer.from(`{ "name" : "a__x" ,"n": 1.0,"_meta":{"a" :12345678901234567890},"t":"${text}","gone":[] }`),
  )
  payload.set('name', '"x"')
  payload.set('first', '{}')
  payload.object('_meta')?.set('a', '2')
  payload.setIn('_meta', 'b', '"é"')
  payload.delete('gone')
  expect(join(payload.parts()).toString()).toBe(`{"first":{}, "name" : "x" ,"n": 1.0,"_meta":{"b":"é","a" :2},"t":"${text}" }`)
  expect(join(payload.fresh().parts()).toString()).toContain('"gone":[]')
  expect(latin1Of(payload.parts())).toBe(join(payload.parts()).toString('latin1'))
})

test('what was only looked into leaves as it came', () => {
  const payload = Payload.at(Buffer.from('{"a":{"b":{"c":1}}}'))
  expect(payload.object('a')?.object('b')?.raw('c')?.toString()).toBe('1')
  expect(join(payload.parts()).toString()).toBe('{"a":{"b":{"c":1}}}')
  payload.object('a')?.object('b')?.set('c', '2')
  expect(join(payload.parts()).toString()).toBe('{"a":{"b":{"c":2}}}')
})

test('methods and ids of any text are written as JSON', () => {
  const params = [Buffer.from('{}')]
  expect(join(requestMessage(7, 'tools/call', params)).toString()).toBe(
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}',
  )
  expect(join(requestMessage(7, 'é"', params)).toString()).toBe('{"jsonrpc":"2.0","id":7,"method":"é\\"","params":{}}')
  expect(join(requestMessage(7, 'ping', undefined)).toString()).toBe('{"jsonrpc":"2.0","id":7,"method":"ping"}')
  expect(join(resultMessage('"é"', params)).toString()).toBe('{"jsonrpc":"2.0","id":"é","result":{}}')
})

import { expect, test } from 'vitest'
import { readEnds } from '../../../src/wire/message/message-ends.ts'

const read = (head: string, tail?: string): unknown =>
  readEnds(Buffer.from(head), tail === undefined ? undefined : Buffer.from(tail))

test.each([
  ['{"jsonrpc":"2.0","id":7,"result":{"te', undefined, 'response', '7'],
  ['{ "id" : 0 , "jsonrpc" : "2.0", "error":{', undefined, 'response', '0'],
  ['{"jsonrpc":"2.0","id":"a-1","method":"tools/call","par', undefined, 'call', '"a-1"'],
  ['{"result":{"text":"xx', 'xx"},"jsonrpc":"2.0","id":12}', 'response', '12'],
  ['{"result":{"text":"xx', 'xx"}, "id": 12, "jsonrpc": "2.0" }\r', 'response', '12'],
  ['{"method":"tools/call","params":{"x":"', '"},"jsonrpc":"2.0","id":3}', 'call', '3'],
  ['{"jsonrpc":"2.0","method":"notifications/message","params":{"x":"', '"}}', 'call', undefined],
])('F-06 %s … %s is a %s with id %s', (head, tail, kind, id) => {
  expect(read(head, tail)).toEqual({ kind, id })
})

test.each([
  ['an id inside the payload', '{"jsonrpc":"2.0","result":{"x":"', '","id":5}}'],
  ['an id inside a string', '{"jsonrpc":"2.0","result":{"x":"', String.raw`,\"id\":5}"}}`],
  ['an id in the middle of the members', '{"jsonrpc":"2.0","result":{"x":"', '"},"id":5,"other":[]}'],
])('F-06 %s is not taken for the id of the message', (_, head, tail) => {
  expect(read(head, tail)).toEqual({ kind: 'response', id: undefined })
})

test('F-06 what is no JSON-RPC is unknown', () => {
  expect(read('Loading model from {"id":1,"result":', '"id":1}')).toEqual({ kind: 'unknown', id: undefined })
})

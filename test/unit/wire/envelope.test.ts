import { describe, expect, test } from 'vitest'
import { DecidingKeys, isCaseVariant } from '../../../src/wire/protocol/deciding-keys.ts'
import {
  EnvelopeError,
  progressTokenOf,
  readHostMessage,
  readServerMessage,
  splitBatch,
} from '../../../src/wire/message/envelope.ts'
import type { Envelope } from '../../../src/wire/message/envelope.ts'
import { join } from '../../../src/wire/message/payload.ts'

const LIMITS = { maxDepth: 64, maxValues: 10_000, maxKeysPerObject: 1_000 }
const request = (params: string): Buffer => Buffer.from(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`)
const keys = (count: number): string => Array.from({ length: count }, (_, index) => `"k${index}":${index}`).join()

const host = (params: string): Envelope => readHostMessage(request(params), LIMITS)
const server = (rest: string): Envelope => readServerMessage(Buffer.from(`{"jsonrpc":"2.0","id":7,${rest}}`))

describe('T-20 keys that decide', () => {
  test.each([1, 33, 500])('are refused where they are repeated among %i others', (count) => {
    expect(() => host(`{"name":1,${keys(count)},"name":0}`)).toThrow('duplicate key "name"')
    expect(host(`{"name":1,${keys(count)}}`).params?.members).toHaveLength(count + 1)
  })

  test.each([
    '{"name":1,"name":1}',
    '{"name":1,"\\u006eame":1}',
    '{"_meta":{"progressToken":1,"progressToken":1}}',
    '{"_meta":{"io.modelcontextprotocol/protocolVersion":1,"io.modelcontextprotocol\\/protocolVersion":1}}',
    '{"ref":{"uri":1,"uri":1}}',
  ])('B269 are compared decoded: %s', (params) => {
    expect(() => host(params)).toThrow('duplicate key')
    expect(() => server(`"method":"m","params":${params}`)).toThrow('duplicate key')
  })

  test.each([
    '{"name":"a","Name":"b"}',
    '{"NAME":"b"}',
    '{"argument\u017f":{}}',
    '{"argument\\u017f":{}}',
    '{"ta\u017f\u212a":{}}',
    '{"requestid":1}',
    '{"_Meta":{}}',
    '{"_meta":{"progresstoken":1}}',
    '{"_meta":{"IO.modelcontextprotocol/protocolVersion":1}}',
    '{"_meta":{"dev.trun\u212aline/hops":1}}',
    '{"messages":[],"ToolChoice":{"mode":"auto"}}',
    '{"ref":{"type":"ref/prompt","Name":"x"}}',
  ])('B270 are refused in another case: %s', (params) => {
    expect(() => host(params)).toThrow('only in case')
    expect(() => server(`"method":"m","params":${params}`)).toThrow('only in case')
  })

  test.each([
    '"ID":8',
    '"Method":"x"',
    '"METHOD":"x"',
    '"paramſ":{}',
    '"JsonRpc":"2.0"',
    '"Result":{}',
    '"error":null,"Error":{}',
  ])('B270 are refused in the message itself: %s', (more) => {
    const message = Buffer.from(`{"jsonrpc":"2.0","id":7,"method":"tools/call",${more}}`)
    expect(() => readHostMessage(message, LIMITS)).toThrow('only in case')
    expect(() => readServerMessage(message)).toThrow('only in case')
  })

  // What the rules of BRIDGING 2.1 to 2.5 and 3 decide by or write.
  test.each(
    `_meta name arguments uri ref cursor taskId level requestState inputResponses task context protocolVersion capabilities clientInfo
    notifications requestId progressToken status logger message mode url elicitationId requestedSchema includeContext messages tools
    toolChoice`.split(/\s+/),
  )('B270 are refused in another case in params: %s', (key) => {
    const upper = key.toUpperCase()
    for (const twice of [`"${key}":1,"${upper}":2`, `"${upper}":2,"${key}":1`, `"${upper}":1`, `"${key}":1,"${key}":2`]) {
      expect(() => host(`{${twice}}`)).toThrow(EnvelopeError)
      expect(() => server(`"method":"m","params":{${twice}}`)).toThrow(EnvelopeError)
    }
  })

  test.each(
    `_meta resultType ttlMs cacheScope content structuredContent isError contents messages completion inputRequests requestState task
    taskId status tools resources resourceTemplates prompts nextCursor supportedVersions protocolVersion capabilities instructions action
    roots role`.split(/\s+/),
  )('B270 are refused in another case in a result: %s', (key) => {
    const upper = key.toUpperCase()
    for (const twice of [`"${key}":1,"${upper}":2`, `"${upper}":1`, `"${key}":1,"${key}":2`])
      expect(() => server(`"result":{${twice}}`)).toThrow(EnvelopeError)
  })

  test('B270 are refused in results and errors of servers', () => {
    expect(() => server('"result":{"resultType":"complete","resultType":"task"}')).toThrow('duplicate key "resultType"')
    expect(() => server('"result":{"ResultType":"task"}')).toThrow('only in case')
    expect(() => server('"result":{"_meta":{"io.modelcontextprotocol/serverinfo":{}}}')).toThrow('only in case')
    expect(() => server('"error":{"code":1,"message":"m","Code":2}')).toThrow('only in case')
  })

  test('B270 differ in case by simple folding, as the engine knows it, neither less nor more', () => {
    for (const letter of 'abcdefghijklmnopqrstuvwxyz/_') {
      const keys = new DecidingKeys([letter])
      const engine = new RegExp(`^${letter}$`, 'iu')
      for (let code = 0; code <= 0xffff; code++) {
        const other = String.fromCharCode(code)
        if ((keys.variantOf(other) !== undefined) !== engine.test(other)) expect.fail(`${letter} and U+${code.toString(16)}`)
      }
    }
  })

  test('B270 names of arguments are compared by the folding of all of Unicode', () => {
    for (const [key, name] of [
      ['ORG', 'org'],
      ['GRÖẞE', 'größe'],
      ['ΣΊΣΥΦΟΣ', 'σίσυφος'],
      ['a.B', 'a.b'],
      ['(X', '(x'],
      ['K', 'k'],
    ] as const)
      expect([key, isCaseVariant(key, name)]).toEqual([key, true])
    for (const [key, name] of [
      ['org', 'org'],
      ['orgs', 'org'],
      ['axb', 'a.b'],
      ['STRASSE', 'straße'],
      ['İ', 'i'],
      ['ı', 'I'],
      ['', 'a'],
    ] as const)
      expect([key, isCaseVariant(key, name)]).toEqual([key, false])
  })
})

test.each([
  ['{"_meta":{"progressToken":"p"}}', '"p"'],
  ['{"_meta":{"progressToken":0}}', '0'],
  ['{"_meta":{"progressToken":null}}', undefined],
  ['{"_meta":null}', undefined],
  ['{}', undefined],
  ['null', undefined],
])('B282 a progress token that is null is none: %s', (params, token) => {
  expect(progressTokenOf(host(params).params)).toBe(token)
})

describe('B269 any other key is content', () => {
  const META = '{"a":1,"A":1,"a":2,"caf\\u00e9":1,"caf\u00e9":1,"x.example\\/k":true}'

  test('and may be repeated, escaped and written in any case', () => {
    expect(host(`{"_meta":${META},"x":1,"x":2}`).params?.raw('_meta')?.toString()).toBe(META)
    expect(host(`{"_meta":${META}}`).params?.object('_meta')?.text('a')).toBeUndefined()
    expect(host(`{"_meta":${META}}`).params?.object('_meta')?.value('a')).toBe(2)
    expect(host(`{"_meta":${META}}`).params?.object('_meta')?.value('x.example/k')).toBe(true)
    for (const rest of [`"result":{"_meta":${META},"x":1,"x":2}`, `"error":{"code":1,"message":"m","data":${META}}`])
      expect(() => server(rest)).not.toThrow()
  })

  test('keys of the protocol are found however they are escaped', () => {
    const message = host('{"n\\u0061me":"x","_meta":{"io.modelcontextprotocol\\/protocolVersion":"v"}}')
    expect(message.params?.text('name')).toBe('x')
    expect(message.params?.object('_meta')?.text('io.modelcontextprotocol/protocolVersion')).toBe('v')
    expect(readServerMessage(Buffer.from('{"jsonrpc":"2.0","\\u0069d":7,"resul\\u0074":{}}')).id).toBe('7')
  })

  test('what is written over a repeated key stands there once', () => {
    const { result } = server('"result":{"x":1,"y":2,"x":3}')
    result?.set('x', '4')
    expect(result && join(result.parts()).toString()).toBe('{"y":2,"x":4}')
    result?.delete('x')
    expect(result && join(result.parts()).toString()).toBe('{"y":2}')
  })
})

describe('B282 null is absent', () => {
  test.each([
    ['"method":"tools/list","params":null', 'request'],
    ['"method":"tools/list","result":null,"error":null', 'request'],
    ['"result":{},"error":null,"method":null,"params":null', 'response'],
    ['"error":{"code":1,"message":"m"},"result":null', 'response'],
  ])('%s', (rest, kind) => {
    const bytes = Buffer.from(`{"jsonrpc":"2.0","id":7,${rest}}`)
    for (const message of [readHostMessage(bytes, LIMITS), readServerMessage(bytes)])
      expect(message).toMatchObject({ kind, id: '7', params: undefined })
  })

  test('a notification may say so, too; an answer of nothing but null is none', () => {
    expect(readServerMessage(Buffer.from('{"jsonrpc":"2.0","method":"n","params":null}')).kind).toBe('notification')
    expect(() => server('"result":null,"error":null')).toThrow('a message has a method, a result or an error')
  })
})

describe('B288 the id of a server\u2019s answer', () => {
  const idOf = (id: string): string | undefined => readServerMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}`)).id

  test.each(['41', '"41"', '41.0', '4.1e1'])('%s is ours', (id) => {
    expect(idOf(id)).toBe('41')
  })
  test.each(['"041"', '"41 "', '"x"', '"4.1e1"', '-41', '41.5', '"12345678901234567"'])('%s is not', (id) => {
    expect(idOf(id)).toBe(id)
  })
  test('of its questions it stays as the server wrote it', () => {
    expect(readServerMessage(Buffer.from('{"jsonrpc":"2.0","id":"41","method":"ping"}')).id).toBe('"41"')
  })
})

test('B271 F-31 an id that is no JSON string makes its message unreadable, however long it is', () => {
  for (const length of [1, 60])
    for (const rest of ['"method":"ping"', '"result":{}', '"method":"ping","Method":"x"']) {
      const message = String.raw`{"jsonrpc":"2.0","id":"${'x'.repeat(length)}\q",${rest}}`
      expect(() => readServerMessage(Buffer.from(message))).toThrow(EnvelopeError)
    }
})

test('a byte order mark before a message is skipped', () => {
  const text = '\ufeff{"jsonrpc":"2.0","id":7,"method":"ping"}'
  expect(readHostMessage(Buffer.from(text), LIMITS)).toMatchObject({ id: '7', method: 'ping' })
  expect(readServerMessage(Buffer.from(text)).bytes[0]).toBe(0x7b)
  expect(splitBatch(Buffer.from(`\ufeff[${text.slice(1)}]`))?.map(String)).toEqual([text.slice(1)])
})

test('a refusal carries the id as it was written', () => {
  const idOf = (text: string): unknown => {
    try {
      return readHostMessage(Buffer.from(text), LIMITS)
    } catch (error) {
      return error instanceof EnvelopeError && error.id
    }
  }
  expect(idOf('{"jsonrpc":"2.0","id":9007199254740993,"method":"m","Method":"n"}')).toBe('9007199254740993')
  expect(idOf('{"jsonrpc":"2.0","id":"a\\/b","method":"m","params":[]}')).toBe('"a\\/b"')
  expect(idOf('{"jsonrpc":"2.0","id":1,"method":"m",}')).toBeUndefined()
})

test('what is refused is named by its place', () => {
  expect(() => readHostMessage(Buffer.from('{"jsonrpc":"2.0"x'), LIMITS)).toThrow('expected "," or "}" at byte 16')
  expect(() => readHostMessage(Buffer.from('{"jsonrpc":"2.'), LIMITS)).toThrow('unterminated string at byte 14')
  expect(() => readHostMessage(Buffer.from('{"a":"\\ud80g"}'), LIMITS)).toThrow('bad \\u escape at byte 11')
})

test('B256 a batch of a server of more than a thousand messages is refused as a whole', () => {
  const batch = (count: number): Buffer => Buffer.from(`[${Array<string>(count).fill('1').join()}]`)
  expect(splitBatch(batch(1_000))).toHaveLength(1_000)
  expect(() => splitBatch(batch(1_001))).toThrow('more than 1000 elements')
  expect(splitBatch(batch(1_001), LIMITS)).toHaveLength(1_001)
})

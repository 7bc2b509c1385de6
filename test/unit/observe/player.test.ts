/** A recording that is served again: which call answers which request, in order or not. */
import { describe, expect, test } from 'vitest'
import { Player } from '../../../src/observe/recorded/player.ts'
import { formatHeader, readRecording } from '../../../src/observe/recorded/recorded-file.ts'
import type { RecordedCall } from '../../../src/observe/recorded/recorded-file.ts'

const META = 'io.modelcontextprotocol/protocolVersion'
const TOOLS = [{ name: 'pay' }]

const call = (params: object, answer: object, method = 'tools/call'): string =>
  JSON.stringify({
    method,
    request: { text: JSON.stringify({ id: 1, method, params: { ...params, _meta: { progressToken: 1 } } }) },
    response: { text: JSON.stringify({ id: 1, ...answer }) },
  })

const LINES = [
  call({ name: 'pay', arguments: { a: 1 } }, { result: { n: 1 } }),
  call({ name: 'pay', arguments: { a: 1 } }, { result: { n: 2 } }),
  call({ name: 'pay', arguments: { a: 2 } }, { error: { code: 5, message: 'no' } }),
  call({ uri: 'a://x' }, { result: { n: 3 } }, 'resources/read'),
  call({}, { result: { prompts: [{ name: 'p' }] } }, 'prompts/list'),
]
const recording = (lines: readonly string[] = LINES): string => [formatHeader(TOOLS).trim(), '', ...lines, ''].join('\n')

const playing = (isStrict = false) => {
  const player = new Player(readRecording(recording()), isStrict)
  const ask = (method: string, params?: object): unknown => {
    const line = player.answer(JSON.stringify({ jsonrpc: '2.0', id: 9, method, params }))
    return line === undefined ? undefined : (JSON.parse(line) as unknown)
  }
  return { player, ask, pay: (a: number) => ask('tools/call', { name: 'pay', arguments: { a } }) }
}

const answered = (result: object) => ({ jsonrpc: '2.0', id: 9, result })
const refused = (message: RegExp) => ({ id: 9, error: { code: -32602, message: expect.stringMatching(message) as unknown } })

test('results, errors and ids are as they were, to the digit', () => {
  const text = (answer: string): string =>
    JSON.stringify({
      method: 'tools/call',
      request: { text: '{"id":1,"params":{"name":"pay"}}' },
      response: { text: `{"id":1,${answer}}` },
    })
  const ask = (answer: string, meta = ''): string | undefined =>
    new Player(readRecording(recording([text(answer)])), false).answer(
      `{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{"name":"pay"${meta}}}`,
    )
  const start = '{"jsonrpc":"2.0","id":12345678901234567890,'
  expect(ask('"result":{"n":12345678901234567890,"share":1.0}')).toBe(`${start}"result":{"n":12345678901234567890,"share":1.0}}`)
  expect(ask('"error":{"code":5,"message":"no","data":1.0}')).toBe(`${start}"error":{"code":5,"message":"no","data":1.0}}`)
  const modern = ask('"result":{"n":1.0,"ttlMs":5}', `,"_meta":{"${META}":"2026-07-28"}`)
  expect(modern).toBe(`${start}"result":{"resultType":"complete","cacheScope":"private","n":1.0,"ttlMs":5}}`)
})

describe('out of order', () => {
  test('answers to one request are used in turn, then the latest again; else the latest of the same name', () => {
    const { pay, ask, player } = playing()
    expect([pay(1), pay(1), pay(1)]).toEqual([{ n: 1 }, { n: 2 }, { n: 2 }].map(answered))
    expect(pay(7)).toEqual({ jsonrpc: '2.0', id: 9, error: { code: 5, message: 'no' } })
    expect(ask('resources/read', { uri: 'a://x' })).toEqual(answered({ n: 3 }))
    expect(ask('resources/read', { uri: 'a://y' })).toMatchObject(refused(/^resources\/read of "a:\/\/y" was not recorded$/))
    expect(ask('prompts/get', { name: 'pay' })).toMatchObject(refused(/^prompts\/get of "pay" was not recorded$/))
    expect(player.left).toBe(4)
  })

  test('lists are those of the recording, or empty', () => {
    const { ask } = playing()
    expect(ask('tools/list')).toEqual(answered({ tools: TOOLS }))
    expect(ask('prompts/list')).toEqual(answered({ prompts: [{ name: 'p' }] }))
    expect(ask('resources/list')).toEqual(answered({ resources: [] }))
    expect(ask('toString')).toMatchObject(refused(/was not recorded/))
  })

  test.each([
    ['2025-03-26', '2025-03-26'],
    ['2026-07-28', '2025-11-25'],
    [undefined, '2025-11-25'],
  ])('a host of revision %s is answered with %s', (protocolVersion, expected) => {
    expect(playing().ask('initialize', { protocolVersion })).toMatchObject(answered({ protocolVersion: expected }))
  })

  test.each(['ping', 'logging/setLevel'])('%s is answered', (method) => {
    expect(playing().ask(method)).toEqual(answered({}))
  })

  test('a host of 2026-07-28 is answered with the members of that revision', () => {
    const { ask } = playing()
    const _meta = { [META]: '2026-07-28' }
    expect(ask('server/discover', { _meta })).toMatchObject({
      result: { supportedVersions: ['2026-07-28'], resultType: 'complete' },
    })
    expect(ask('tools/call', { name: 'pay', arguments: { a: 1 }, _meta })).toEqual(
      answered({ resultType: 'complete', ttlMs: 0, cacheScope: 'private', n: 1 }),
    )
    expect(ask('tools/call', { name: 'pay', arguments: { a: 2 }, _meta })).toMatchObject({ error: { code: 5 } })
  })

  test('a notification has no answer, and what is no JSON an error', () => {
    const { player } = playing()
    expect(player.answer('{"jsonrpc":"2.0","method":"tools/list"}')).toBeUndefined()
    expect(player.answer('{"jsonrpc":"2.0","id":1}')).toBeUndefined()
    expect(player.answer('{')).toContain('-32700')
  })
})

test('in order, each recorded call answers once, lists at any time, and another call is told what was expected', () => {
  const { pay, ask, player } = playing(true)
  expect(player.left).toBe(4)
  expect(pay(2)).toMatchObject(refused(/^call 1 of the recording is tools\/call \{"name":"pay","arguments":\{"a":1\}\}$/))
  expect(ask('prompts/get', { name: 'pay', arguments: { a: 1 } })).toMatchObject(refused(/^call 1 /))
  expect([pay(1), ask('prompts/list'), pay(1), pay(2)]).toMatchObject([
    { result: { n: 1 } },
    {},
    { result: { n: 2 } },
    { error: {} },
  ])
  expect(player.left).toBe(1)
  expect(ask('resources/read', { uri: 'a://x' })).toEqual(answered({ n: 3 }))
  expect(player.left).toBe(0)
  expect(pay(1)).toMatchObject(refused(/^the recording has ended: tools\/call was not recorded$/))
})

describe('a file', () => {
  test.each<[lines: readonly string[], message: string]>([
    [[''], 'line 1: expected a JSON object'],
    [['{"tools":[]}'], 'line 1: this is no recording, as tail --record writes it'],
    [['{"trunkline":"recording","format":1}'], 'line 1: this is no recording, as tail --record writes it'],
    [['{"trunkline":"recording","format":2,"tools":[]}'], 'line 1: the recording has format 2, this version reads 1'],
    [[formatHeader([]), '[]'], 'line 2: expected a JSON object'],
    [[formatHeader([]), '{"method":"x","request":{"text":"{}"},"response":{"text":"["}}'], 'line 2: expected a JSON object'],
    [[formatHeader([]), '{}', '{}'], 'line 2: this is no captured call'],
    [
      [formatHeader([]), LINES[0]!, '{"method":"x","request":{"text":"["},"response":{"text":"{}"}}'],
      'line 3: expected a JSON object',
    ],
  ])('%j is refused with its line', (lines, message) => {
    expect(() => readRecording(lines.join('\n'))).toThrow(message)
  })

  test('has the calls whose messages were kept whole, without _meta', () => {
    const cut = JSON.stringify({ method: 'tools/call', request: { text: '{}' }, response: { head: 'a' } })
    const uncut = JSON.stringify({ method: 'ping', request: { head: 'a' }, response: { text: '{}' } })
    const bare = JSON.stringify({ method: 'ping', request: { text: '{}' }, response: { text: '{"result":{}}' } })
    expect(readRecording(recording([cut, uncut, LINES[0]!, LINES[2]!, bare]))).toEqual({
      tools: TOOLS,
      calls: [
        { method: 'tools/call', params: { name: 'pay', arguments: { a: 1 } }, result: '{"n":1}' },
        { method: 'tools/call', params: { name: 'pay', arguments: { a: 2 } }, error: '{"code":5,"message":"no"}' },
        { method: 'ping', params: {}, result: '{}' },
      ] satisfies RecordedCall[],
    })
  })
})

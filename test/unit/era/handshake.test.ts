/** What is read of a server's first answers, and what every request to it says of its caller (BRIDGING 3.1, 5.2). */
import { describe, expect, test } from 'vitest'
import { digestOf } from '../../../src/era/host/request-digest.ts'
import { withClientCredentials } from '../../../src/era/server/client-credentials.ts'
import { discoverMessage, readDiscover } from '../../../src/era/server/discover.ts'
import { RequestMeta } from '../../../src/era/server/request-meta.ts'
import { resultOf } from '../../../src/era/server/result-of.ts'
import type { Call } from '../../../src/rpc/call.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const P = 'io.modelcontextprotocol/'
const answer = (members: object) => readServerMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, ...members })))
const textOf = (call: Call): string => Buffer.concat([call.params.parts()].flat(2)).toString()

describe('server/discover', () => {
  test.each<[members: object, reading: object]>([
    [
      { result: { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, instructions: 'Do' } },
      { says: 'modern', server: { capabilities: { tools: {} }, instructions: 'Do', gateways: [] } },
    ],
    [
      { result: { supportedVersions: ['2026-07-28'], serverInfo: { name: 'a' } } },
      { says: 'modern', server: { capabilities: {}, serverInfo: { name: 'a' } } },
    ],
    [
      { result: { supportedVersions: ['2026-07-28'], serverInfo: { name: 'a' }, _meta: { [`${P}serverInfo`]: { name: 'b' } } } },
      { says: 'modern', server: { serverInfo: { name: 'b' } } },
    ],
    [
      { result: { supportedVersions: ['2026-07-28'], serverInfo: 5, _meta: { 'dev.trunkline/gateways': ['g'] } } },
      { says: 'modern', server: { serverInfo: undefined, gateways: ['g'] } },
    ],
    [{ result: {} }, { says: 'legacy' }],
    [{ result: { supportedVersions: [] } }, { says: 'legacy' }],
    [{ result: { supportedVersions: ['2025-11-25', '2099-01-01'] } }, { says: 'legacy' }],
    [{ result: { supportedVersions: ['2099-01-01'] } }, { says: 'no common version', offered: ['2099-01-01'] }],
    [{ error: { code: -32020, message: 'm' } }, { says: 'again' }],
    [{ error: { code: -32021, message: 'm' } }, { says: 'again' }],
    [{ error: { code: -32601, message: 'm' } }, { says: 'legacy' }],
    [{ error: { code: -32022, message: 'm', data: { supported: ['2026-07-28'] } } }, { says: 'again' }],
    [
      { error: { code: -32022, message: 'm', data: { supported: ['2099-01-01'] } } },
      { says: 'no common version', offered: ['2099-01-01'] },
    ],
    [{ error: { code: -32022, message: 'm', data: { supported: ['2025-06-18'] } } }, { says: 'legacy' }],
    [{ error: { code: -32022, message: 'm', data: { supported: '2026-07-28' } } }, { says: 'legacy' }],
    [{ error: { code: -32022, message: 'm' } }, { says: 'legacy' }],
  ])('B280 that answers %j is %j', (members, reading) => {
    expect(readDiscover(answer(members))).toMatchObject(reading)
  })

  test('B282 that answers null for a capability declares none', () => {
    const capabilities = { tools: {}, prompts: null, extensions: { x: null } }
    const reading = readDiscover(answer({ result: { supportedVersions: ['2026-07-28'], capabilities } }))
    expect('server' in reading && reading.server.capabilities).toEqual({ tools: {}, extensions: {} })
  })

  test.each([['trunkline'], [undefined]])('says who asks, by way of %s', (via) => {
    const identity = { name: 'g', title: 'G', version: '1' }
    const sent = JSON.parse(
      Buffer.concat([discoverMessage(7, { roots: {} }, { identity, via } as never, 2)].flat(2)).toString(),
    ) as object
    expect(sent).toMatchObject({
      id: 7,
      method: 'server/discover',
      params: {
        _meta: {
          [`${P}protocolVersion`]: '2026-07-28',
          [`${P}clientInfo`]: identity,
          [`${P}clientCapabilities`]: { roots: {} },
          'dev.trunkline/hops': 2,
        },
      },
    })
    expect(JSON.stringify(sent).includes('"trunkline"')).toBe(via !== undefined)
  })
})

test.each<[members: object, expected: object | undefined]>([
  [{ result: { n: 1 } }, undefined],
  [{ error: { code: 5, message: 'no' } }, { name: 'ServerError', code: 5, message: 'no' }],
  [{ error: { code: 1.5, message: 'no' } }, { kind: 'bad_response' }],
  [{ error: { code: 5 } }, { kind: 'bad_response' }],
])('the answer %j is an error: %j', (members, expected) => {
  if (expected === undefined) expect(resultOf(answer(members)).value('n')).toBe(1)
  else expect(() => resultOf(answer(members))).toThrow(expect.objectContaining(expected) as Error)
})

const CREDENTIALS = `${P}oauth-client-credentials`
test.each<[capabilities: object, isUsed: boolean, declared: object]>([
  [{ roots: {} }, false, { roots: {} }],
  [{ roots: {} }, true, { roots: {}, extensions: { [CREDENTIALS]: {} } }],
  [{ extensions: { x: {} } }, true, { extensions: { x: {}, [CREDENTIALS]: {} } }],
  [{ extensions: { x: {} } }, false, { extensions: { x: {} } }],
  [{ extensions: { x: {}, [CREDENTIALS]: { own: 1 } } }, false, { extensions: { x: {} } }],
  [{ extensions: { [CREDENTIALS]: { own: 1 } } }, true, { extensions: { [CREDENTIALS]: {} } }],
])('of %j, with client credentials used: %s, a server is told %j', (capabilities, isUsed, declared) => {
  expect(withClientCredentials({ ...capabilities }, isUsed)).toEqual(declared)
})

test.each<[one: Partial<Call>, other: Partial<Call>, isSame: boolean]>([
  [{}, {}, true],
  [{ params: Payload.of({ arguments: { a: 1, b: 2 } }) }, { params: Payload.of({ arguments: { b: 2, a: 1 }, _meta: {} }) }, true],
  [{ params: Payload.of({ arguments: { a: 1 } }) }, { params: Payload.of({ arguments: { a: 2 } }) }, false],
  [{ params: Payload.of({ arguments: {} }) }, { params: Payload.of({}) }, false],
  [{ method: 'prompts/get' }, {}, false],
  [{ target: 'b' }, {}, false],
  [{ target: undefined }, {}, false],
])('B064 the digests of two requests are the same: %#', (one, other, isSame) => {
  expect(digestOf(callOf(one)) === digestOf(callOf(other))).toBe(isSame)
})

describe('the _meta of a request', () => {
  const capabilities = {}
  const scope = { server: undefined }
  const call = (more: Parameters<typeof callOf>[0] = {}, params: object = {}): Call =>
    callOf({ params: Payload.of(params), ...more, caller: { capabilities, scope, ...more.caller } })
  const writing = () => {
    let edits = 0
    const meta = new RequestMeta((draft) => {
      edits++
      draft.set('made', '1')
    })
    const write = (one: Call, id = 7): object => {
      meta.write(one, id)
      return (JSON.parse(textOf(one)) as { _meta: object })._meta
    }
    return { write, edits: () => edits }
  }

  test('is made once for equal ones of one host', () => {
    const { write, edits } = writing()
    for (let times = 0; times < 2; times++) expect(write(call({}, { _meta: { x: 1 } }))).toEqual({ x: 1, made: 1 })
    expect(edits()).toBe(1)
  })

  test('T-34 is kept as a copy, also where nothing in it changes', () => {
    const meta = new RequestMeta(() => undefined)
    const first = Payload.of({ _meta: { x: 1 } })
    meta.write(call({ params: first }), 1)
    first.bytes.fill('?')
    const later = call({}, { _meta: { x: 1 } })
    meta.write(later, 2)
    expect(JSON.parse(textOf(later))).toEqual({ _meta: { x: 1 } })
  })

  test.each<[what: string, other: Call]>([
    ['_meta', call({}, { _meta: { x: 2 } })],
    ['missing _meta', call()],
    ['log level', call({ logLevel: 'info' }, { _meta: { x: 1 } })],
    ['endpoint', call({ caller: { scope: { server: 'a' } } }, { _meta: { x: 1 } })],
    ['capabilities', call({ caller: { capabilities: { roots: {} } } }, { _meta: { x: 1 } })],
  ])('is made again for another %s', (_what, other) => {
    const { write, edits } = writing()
    write(call({}, { _meta: { x: 1 } }))
    write(other)
    expect(edits()).toBe(2)
  })

  test.each([[5], ['x'], [null]])('is made anew in place of %j', (_meta) => {
    expect(writing().write(call({}, { _meta }))).toEqual({ made: 1 })
  })

  test('B136 has no progress token for a host whose token is null', () => {
    expect(writing().write(call({}, { _meta: { progressToken: null, x: 1 } }))).toEqual({ x: 1, made: 1 })
  })

  test('has the id as progress token, and the trace, but nothing withheld; none of it is kept', () => {
    const { write, edits } = writing()
    expect(write(call({ progressToken: '"t"', withheld: ['x'] }, { _meta: { x: 1, y: 2 } }), 9)).toEqual({
      y: 2,
      made: 1,
      progressToken: 9,
    })
    const trace = {
      write: (meta: { set: (key: string, json: string) => void }, id: number) => meta.set('traceparent', `"t${id}"`),
    }
    // Cast: only this is used of it.
    expect(write(call({ trace: trace as unknown as NonNullable<Call['trace']> }), 3)).toEqual({
      made: 1,
      traceparent: '"t3"'.slice(1, -1),
    })
    expect(write(call({ withheld: [] }))).toEqual({ made: 1 })
    expect(write(call())).toEqual({ made: 1 })
    expect(edits()).toBe(4)
  })
})

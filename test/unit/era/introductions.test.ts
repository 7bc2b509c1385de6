/** How hosts of both eras introduce themselves, and what they are told of a server (BRIDGING 3.1, 5.1). */
import { describe, expect, test } from 'vitest'
import { bridgedCapabilities } from '../../../src/era/host/bridged-capabilities.ts'
import { CapabilityCache } from '../../../src/era/host/capability-cache.ts'
import { checkMirrors, checkVersionHeader } from '../../../src/era/host/check-headers.ts'
import { initializeResult, readInitialize, withoutModernMembers, withoutModernMeta } from '../../../src/era/host/legacy-host.ts'
import {
  checkRange,
  checkRound,
  discoveredCapabilities,
  encodeModern,
  isModern,
  readModern,
} from '../../../src/era/host/modern-host.ts'
import { gatewaysIn, hopsIn, nextHop, refuseCircle } from '../../../src/era/gateways.ts'
import type { Outcome } from '../../../src/rpc/call.ts'
import { NO_LIMITS } from '../../../src/wire/json/scan.ts'
import { progressTokenOf, readHostMessage } from '../../../src/wire/message/envelope.ts'
import type { Envelope } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { JsonObject } from '../../../src/wire/message/payload.ts'
import type { Revision, RevisionRange } from '../../../src/wire/protocol/revisions.ts'

const P = 'io.modelcontextprotocol/'
const TASKS = `${P}tasks`
const UI = `${P}ui`
const GATEWAYS = 'dev.trunkline/gateways'
const ALL: RevisionRange = { min: '2024-11-05', max: '2026-07-28' }
const LEGACY: RevisionRange = { ...ALL, max: '2025-11-25' }
const OWN = { tools: { listChanged: true }, logging: {} }

const message = (method: string, params?: object): Envelope =>
  readHostMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })), NO_LIMITS)
const textOf = (payload: JsonObject): string => Buffer.concat([payload.parts()].flat(2)).toString()
const refused = (code: number, text: RegExp = /./) =>
  expect.objectContaining({ code, message: expect.stringMatching(text) as unknown }) as Error

describe('initialize', () => {
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'h' } }
  const read = (more: object, range = ALL) => readInitialize(message('initialize', { ...params, ...more }), range)

  test.each<[asked: string, range: RevisionRange, revision: string]>([
    ['2025-06-18', ALL, '2025-06-18'],
    ['2026-07-28', ALL, '2025-11-25'],
    ['1999-01-01', ALL, '2025-11-25'],
    ['2025-11-25', { ...ALL, max: '2025-06-18' }, '2025-06-18'],
    ['2024-11-05', { ...ALL, min: '2025-03-26' }, '2025-11-25'],
  ])('B024 for %s within %j is answered with %s', (protocolVersion, range, revision) => {
    expect(read({ protocolVersion }, range)).toEqual({ revision, capabilities: {}, clientInfo: { name: 'h' }, hops: 0 })
  })

  test('B282 declares no capability by null, in either era', () => {
    const extensions = { [UI]: null, x: { y: null } }
    const capabilities = { elicitation: { form: {}, url: null }, sampling: null, experimental: { x: null }, extensions }
    const declared = { elicitation: { form: {} }, experimental: { x: null }, extensions: { x: { y: null } } }
    expect(read({ capabilities }).capabilities).toEqual(declared)
    const _meta = { [`${P}protocolVersion`]: '2026-07-28', [`${P}clientCapabilities`]: capabilities }
    expect(readModern(message('tools/list', { _meta }), new CapabilityCache()).capabilities).toEqual(declared)
  })

  test('has its capabilities without the tasks of either era, and its hops', () => {
    const capabilities = { roots: {}, tasks: {}, extensions: { [TASKS]: {}, [UI]: {} } }
    expect(read({ capabilities, _meta: { 'dev.trunkline/hops': 2 } })).toMatchObject({
      capabilities: { roots: {}, extensions: { [UI]: {} } },
      hops: 2,
    })
    expect(read({ capabilities }).capabilities).not.toHaveProperty('tasks')
    expect(read({ capabilities: undefined }).capabilities).toEqual({})
  })

  test('B293 is refused where only modern revisions are spoken, with those that are', () => {
    for (const protocolVersion of ['2025-06-18', undefined])
      expect(() => read({ protocolVersion }, { ...ALL, min: '2026-07-28' })).toThrow(refused(-32022, /supported: 2026-07-28/))
  })

  test.each([[{ protocolVersion: undefined }], [{ protocolVersion: 5 }], [{ capabilities: [] }]])(
    'with %j is refused',
    (more) => {
      expect(() => read(more)).toThrow(refused(-32602))
    },
  )

  test.each<[revision: '2025-06-18' | '2025-11-25', tasks: boolean, apps: object | undefined]>([
    ['2025-11-25', true, { a: 1 }],
    ['2025-11-25', false, undefined],
    ['2025-06-18', true, undefined],
  ])('is answered for %s with tasks (%s) and apps (%j) where they exist', (revision, tasks, apps) => {
    const identity = { name: 'g', title: 'G', version: '1' }
    const answer = initializeResult(revision, identity, tasks ? 'Do' : undefined, { tasks, apps }, ['g1'])
    expect(answer).toMatchObject({
      protocolVersion: revision,
      capabilities: OWN,
      serverInfo: identity,
      _meta: { [GATEWAYS]: ['g1'] },
    })
    const hasTasks = tasks && revision === '2025-11-25'
    expect([
      'instructions' in answer,
      JSON.stringify(answer).includes('"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}'),
      JSON.stringify(answer).includes(`"extensions":{"${UI}":{"a":1}}`),
      JSON.stringify(answer).includes('extensions'),
    ]).toEqual([tasks, hasTasks, apps !== undefined, apps !== undefined])
  })
})

describe('a modern request', () => {
  const META = { [`${P}protocolVersion`]: '2026-07-28', [`${P}clientCapabilities`]: { roots: {} } }
  const read = (meta: object | undefined) => readModern(message('tools/list', { _meta: meta }), new CapabilityCache())

  test('says its revision, its capabilities, its name and a log level', () => {
    expect(read({ ...META, [`${P}clientInfo`]: { name: 'h' }, [`${P}logLevel`]: 'info' })).toMatchObject({
      revision: '2026-07-28',
      capabilities: { roots: {} },
      clientInfo: { name: 'h' },
      logLevel: 'info',
    })
    expect(read(META)).toMatchObject({ logLevel: undefined })
  })

  test.each([
    [7, '7'],
    [null, undefined],
    [undefined, undefined],
  ])('B136 B282 with progress token %j has %j', (progressToken, expected) => {
    expect(progressTokenOf(message('tools/list', { _meta: { ...META, progressToken } }).params)).toBe(expected)
  })

  test.each<[meta: object | undefined, code: number]>([
    [undefined, -32602],
    [{ ...META, [`${P}protocolVersion`]: 5 }, -32602],
    [{ ...META, [`${P}protocolVersion`]: '2025-11-25' }, -32022],
    [{ ...META, [`${P}clientCapabilities`]: [] }, -32602],
    [{ ...META, [`${P}logLevel`]: 'loud' }, -32602],
    [{ ...META, [`${P}logLevel`]: null }, -32602],
  ])('with %j is refused', (meta, code) => {
    expect(() => read(meta)).toThrow(refused(code))
  })

  test('B034 is told from a legacy one by its version alone', () => {
    expect([META, { progressToken: 1 }, undefined].map((_meta) => isModern(message('ping', { _meta })))).toEqual([
      true,
      false,
      false,
    ])
  })

  test('B293 is refused where the era is not spoken, with the revisions that are', () => {
    expect(() => checkRange(message('ping', { _meta: META }), LEGACY)).toThrow(
      refused(-32600, /version 2026-07-28 .*2024-11-05, .*2025-11-25$/),
    )
    expect(() => checkRange(message('ping', { _meta: META }), ALL)).not.toThrow()
  })

  test.each<[header: string | undefined, version: string | undefined, code: number | undefined]>([
    ['2026-07-28', '2026-07-28', undefined],
    ['2026-07-28', undefined, undefined],
    [undefined, '2026-07-28', -32020],
    ['2025-11-25', '2026-07-28', -32020],
    ['2025-11-25', '2025-11-25', -32022],
  ])('B190 with the version header %s and the version %s: %s', (header, version, code) => {
    const check = (): void => checkVersionHeader(message('ping', { _meta: { [`${P}protocolVersion`]: version } }), header)
    if (code === undefined) expect(check).not.toThrow()
    else expect(check).toThrow(refused(code))
  })

  test.each<[method: string, headers: Readonly<Record<string, string>>, isFine: boolean]>([
    ['tools/call', { 'mcp-method': 'tools/call', 'mcp-name': 'a' }, true],
    ['tools/call', { 'mcp-method': 'tools/call', 'mcp-name': '=?base64?YQ==?=' }, true],
    ['tools/list', { 'mcp-method': 'tools/list' }, true],
    ['tools/list', { 'mcp-method': 'tools/list', 'mcp-name': 'b' }, true],
    ['other/method', { 'mcp-method': 'other/method' }, true],
    ['tools/call', { 'mcp-name': 'a' }, false],
    ['tools/call', { 'mcp-method': 'tools/list', 'mcp-name': 'a' }, false],
    ['tools/call', { 'mcp-method': 'tools/call' }, false],
    ['tools/call', { 'mcp-method': 'tools/call', 'mcp-name': 'b' }, false],
    ['tools/call', { 'mcp-method': 'tools/call', 'mcp-name': '=?base64?!?=' }, false],
  ])('B191 %s with the headers %j is fine: %s', (method, headers, isFine) => {
    const check = (): void => checkMirrors(message(method, { name: 'a' }), (name) => headers[name])
    if (isFine) expect(check).not.toThrow()
    else expect(check).toThrow(refused(-32020, /^Header mismatch: /))
  })

  test.each<[method: string, params: object | undefined, isFine: boolean]>([
    ['tools/call', undefined, true],
    ['tools/call', {}, true],
    ['tools/call', { requestState: 's' }, true],
    ['tools/call', { inputResponses: {} }, true],
    ['tools/call', { inputResponses: {}, requestState: 's' }, true],
    ['tools/call', { requestState: null }, true],
    ['tools/call', { inputResponses: null, requestState: null }, true],
    ['tools/call', { inputResponses: {}, requestState: null }, false],
    ['tools/call', { requestState: 5 }, false],
    ['tools/call', { inputResponses: [] }, false],
    ['tools/list', { inputResponses: [], requestState: 5 }, true],
  ])('B061 a round of %s with %j is fine: %s', (method, params, isFine) => {
    const check = (): void => checkRound(message(method, params))
    if (isFine) expect(check).not.toThrow()
    else expect(check).toThrow(refused(-32602))
  })
})

test.each<[offers: { readonly tasks: boolean; readonly apps: object | undefined }, extensions: object | undefined]>([
  [{ tasks: false, apps: undefined }, undefined],
  [{ tasks: true, apps: undefined }, { [TASKS]: {} }],
  [{ tasks: false, apps: { a: 1 } }, { [UI]: { a: 1 } }],
  [
    { tasks: true, apps: { a: 1 } },
    { [TASKS]: {}, [UI]: { a: 1 } },
  ],
])('for %j the extensions of server/discover are %j', (offers, extensions) => {
  expect(discoveredCapabilities(offers)).toMatchObject(OWN)
  expect((discoveredCapabilities(offers) as { extensions?: object }).extensions).toEqual(extensions)
})

test.each<[capabilities: object, host: Revision, tasks: boolean, shown: object]>([
  [{ tools: {} }, '2025-11-25', true, { tools: {} }],
  [{ tasks: { list: {} } }, '2025-11-25', true, { tasks: { list: {} } }],
  [{ tasks: { list: {} } }, '2025-11-25', false, {}],
  [{ tasks: { list: {} } }, '2025-06-18', true, {}],
  [{ tasks: { list: {} } }, '2026-07-28', true, { extensions: { [TASKS]: {} } }],
  [
    { extensions: { [TASKS]: {}, x: {} } },
    '2025-11-25',
    true,
    { tasks: { cancel: {}, requests: { tools: { call: {} } } }, extensions: { x: {} } },
  ],
  [{ extensions: { [TASKS]: {} } }, '2025-11-25', false, {}],
  [{ extensions: { [TASKS]: {}, x: {} } }, '2026-07-28', false, { extensions: { x: {} } }],
  [{ extensions: {} }, '2026-07-28', true, { extensions: {} }],
  [{ extensions: [] }, '2026-07-28', true, {}],
])('of a bridged server with %j a host of %s, with tasks: %s, sees %j', (capabilities, host, tasks, shown) => {
  expect(bridgedCapabilities({ ...capabilities }, host, tasks)).toEqual(shown)
})

describe('a result', () => {
  test.each<[meta: object, left: object | undefined]>([
    [{ [`${P}serverInfo`]: 1 }, undefined],
    [{ [`${P}serverInfo`]: 1, x: 2 }, { x: 2 }],
    [{ [`${P}related-task`]: { taskId: 't' }, [`${P}serverInfo`]: 1 }, { [`${P}related-task`]: { taskId: 't' } }],
    [{ x: 2 }, { x: 2 }],
  ])('B291 with _meta %j reaches legacy hosts with %j', (_meta, left) => {
    const result = Payload.of({ n: 1, _meta })
    withoutModernMeta(result)
    expect(JSON.parse(textOf(result))).toEqual({ n: 1, ...(left !== undefined && { _meta: left }) })
  })

  test('B106 loses the members of the modern era, but for the rounds of a legacy SDK', () => {
    const of = (resultType: string) =>
      JSON.parse(textOf(withoutModernMembers(Payload.of({ resultType, ttlMs: 1, cacheScope: 'x', n: 1 })))) as object
    expect([of('complete'), of('input_required')]).toEqual([{ n: 1 }, { resultType: 'input_required', n: 1 }])
  })

  test.each<[kind: string, type: string | undefined, method: string, result: object, shown: object]>([
    ['complete', undefined, 'tools/call', { n: 1 }, { n: 1, resultType: 'complete' }],
    ['complete', undefined, 'tools/list', { n: 1 }, { n: 1, resultType: 'complete', ttlMs: 0, cacheScope: 'private' }],
    [
      'complete',
      undefined,
      'tools/list',
      { ttlMs: 5, cacheScope: 'public' },
      { ttlMs: 5, cacheScope: 'public', resultType: 'complete' },
    ],
    ['complete', 'x', 'tools/list', { resultType: 'x' }, { resultType: 'x' }],
    ['input_required', undefined, 'tools/list', { ttlMs: 5, cacheScope: 'public', n: 1 }, { n: 1 }],
    ['task', undefined, 'tools/call', { n: 1 }, { n: 1, resultType: 'task' }],
  ])('B008 %s of type %s of %s: %j reaches modern hosts as %j', (kind, type, method, result, shown) => {
    // Cast: of each kind only these are read.
    const outcome = { kind, type, result: Payload.of(result) } as unknown as Outcome
    expect(JSON.parse(textOf(encodeModern(outcome, method, undefined)))).toEqual(shown)
    const named = encodeModern({ ...outcome, result: Payload.of(result) }, method, Buffer.from('{"name":"g"}'))
    expect(JSON.parse(textOf(named))).toEqual({ ...shown, _meta: { [`${P}serverInfo`]: { name: 'g' } } })
  })
})

describe('T-35 gateways', () => {
  test.each<[names: unknown, read: readonly string[]]>([
    [undefined, []],
    ['a', []],
    [
      ['a', 1, 'x'.repeat(65), 'x'.repeat(64)],
      ['a', 'x'.repeat(64)],
    ],
    [Array.from({ length: 1_001 }, () => 'a'), Array.from({ length: 1_000 }, () => 'a')],
  ])('in an answer are at most a thousand names', (names, read) => {
    expect(gatewaysIn(Payload.of({ _meta: { [GATEWAYS]: names } }))).toEqual(read)
  })

  test('that lead back are refused', () => {
    expect(() => refuseCircle(['a', 'me'], 'me')).toThrow(expect.objectContaining({ kind: 'loop', executed: 'no' }) as Error)
    expect(() => refuseCircle(['a'], 'me')).not.toThrow()
  })

  test.each([
    [1, 1],
    [0, 0],
    [-1, 0],
    [1.5, 0],
    ['2', 0],
    [undefined, 0],
  ])('that a request says it passed, %j, are %i', (hops, read) => {
    expect(hopsIn(Payload.of({ 'dev.trunkline/hops': hops }))).toBe(read)
    expect(hopsIn(undefined)).toBe(0)
  })

  test('are at most three before this one', () => {
    expect([nextHop(0), nextHop(2)]).toEqual([1, 3])
    expect(() => nextHop(3)).toThrow(expect.objectContaining({ kind: 'loop', executed: 'no' }) as Error)
  })
})

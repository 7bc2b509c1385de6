/** Requests to a running process: what their paths, queries and bodies mean, and what of them is refused. */
import { describe, expect, test, vi } from 'vitest'
import { readQuestion } from '../../../src/admin/explain/can.ts'
import { countOf, followCalls, pageOfCalls, readFilter } from '../../../src/admin/calls/calls.ts'
import { readReplay } from '../../../src/admin/calls/replay.ts'
import { statsOf, timedCalls } from '../../../src/admin/calls/stats.ts'
import type { TimedCall } from '../../../src/admin/calls/stats.ts'
import { localControl } from '../../../src/admin/control.ts'
import type { Control } from '../../../src/admin/control.ts'
import { findRoute } from '../../../src/admin/routes.ts'
import { logQueryOf, readLogs } from '../../../src/admin/state/logs.ts'
import { OPERATOR } from '../../../src/observe/viewer.ts'
import { Redactor } from '../../../src/redactor.ts'

/** What the control is asked for; it answers `undefined`, or what `answers` say. Cast: it has every method. */
const asking = (answers: Readonly<Record<string, unknown>> = {}) => {
  const asked: unknown[] = []
  const control = new Proxy({} as Control, {
    get:
      (_, name) =>
      (...args: readonly unknown[]) => {
        asked.push([name, ...args])
        return Promise.resolve(answers[String(name)])
      },
  })
  const request = (line: string, query = '', body = ''): Promise<Buffer | object> => {
    const [method = '', path = ''] = line.split(' ')
    const { route, id } = findRoute(method, path)!
    const { signal } = new AbortController()
    return route.answer({ query: new URLSearchParams(query), body, control, signal, viewer: OPERATOR, id })
  }
  return { asked, request }
}
const refused = (status: number, code: string, at?: number) =>
  expect.objectContaining({ status, code, ...(at !== undefined && { at }) }) as Error

test.each([
  ['GET', '/calls', 0],
  ['GET', '/calls/17', 17],
  ['GET', '/calls/x', undefined],
  ['GET', '/calls/1234567890123456', undefined],
  ['GET', '/status/1', undefined],
  ['POST', '/status', undefined],
  ['GET', '/toString', undefined],
  ['GET', '/calls/ID', 0],
])('the route of %s %s has the number %s', (method, path, id) => {
  expect(findRoute(method, path)?.id).toBe(id)
})

test.each<[line: string, query: string, asked: readonly unknown[], answer: unknown]>([
  ['GET /stats', '', ['stats', 300_000], undefined],
  ['GET /stats', 'window=2m', ['stats', 120_000], undefined],
  ['GET /stderr', 'server=a', ['stderr', 'a', 200], { lines: [] }],
  ['GET /stderr', 'server=a&lines=5000', ['stderr', 'a', 1_000], { lines: [] }],
  ['GET /offered', 'server=a&server=b&apps=true', ['offered', ['a', 'b'], true], undefined],
  ['GET /offered', 'apps=1', ['offered', [], false], undefined],
  ['GET /lint', 'host=cursor&host=toString', ['lint', ['cursor']], undefined],
  ['GET /metrics', 'open=true', ['metrics', true], { text: undefined }],
  ['GET /metrics', '', ['metrics', false], { text: undefined }],
  ['GET /basis', '', ['basis'], {}],
  ['POST /restart', 'server=a', ['restart', 'a'], { restarted: undefined }],
  ['POST /restart', '', ['restart', ''], { restarted: undefined }],
  ['POST /login', 'server=a', ['login', 'a'], { login: undefined }],
  ['GET /tools', '', ['tools', '', undefined], { tools: [] }],
  ['GET /tools', 'query=q&toolset=t', ['tools', 'q', 't'], { tools: [] }],
  ['GET /why', 'name=n&toolset=t', ['why', 'n', 't'], undefined],
  ['GET /why', '', ['why', '', undefined], undefined],
  ['GET /search', 'query=q&toolset=t', ['search', 'q', 't'], { tools: [] }],
  ['GET /search', '', ['search', '', undefined], { tools: [] }],
  ['GET /guides', 'toolset=t', ['guides', 't'], { guides: [] }],
  ['POST /approve', 'server=a&tool=b', ['approve', 'a', 'b'], { approved: [] }],
  ['POST /approve', 'server=a', ['approve', 'a', undefined], { approved: [] }],
])('%s?%s asks for %j', async (line, query, wanted, answer) => {
  const { asked, request } = asking({ stderr: [], search: [], guides: [], tools: [], approve: [] })
  expect(await request(line, query)).toEqual(answer)
  expect(asked).toEqual([wanted])
})

test('a tool that is called answers its bytes, and one that is not called the reason', async () => {
  const end = { kind: 'result', isError: false, call: 7, result: Buffer.from('{"n": 1.0}') }
  const { request, asked } = asking({ call: end, replay: end })
  expect(await request('POST /call', 'tool=a&toolset=t', '{}')).toEqual(
    Buffer.from('{"kind":"result","isError":false,"result":{"n": 1.0}}'),
  )
  expect(asked[0]).toMatchObject(['call', { tool: 'a', args: '{}', toolset: 't', host: undefined }, {}])
  expect(await request('POST /replay', '', '{"id":1}')).toEqual(
    Buffer.from('{"kind":"result","call":7,"isError":false,"result":{"n": 1.0}}'),
  )
  const no = { kind: 'refused', message: 'no' }
  for (const line of ['POST /call', 'POST /replay'])
    expect(await asking({ call: no, replay: no }).request(line, '', '{"id":1}')).toBe(no)
})

test.each([
  ['GET /stats', 'window=soon', 400, 'query'],
  ['GET /stats', 'window=0s', 400, 'query'],
  ['GET /stderr', 'server=a', 404, 'gone'],
  ['GET /stderr', 'lines=x', 400, 'query'],
  ['GET /search', 'query=x&toolset=t', 404, 'gone'],
  ['GET /guides', '', 404, 'gone'],
  ['GET /tools', 'toolset=t', 404, 'gone'],
  ['POST /approve', 'server=a', 404, 'gone'],
])('%s?%s is refused', async (line, query, status, code) => {
  await expect((async () => asking().request(line, query))()).rejects.toThrow(refused(status, code))
})

test.each([
  ['', undefined],
  ['n=', undefined],
  ['n=0', 0],
  ['n=15', 15],
])('of the query %j the count is %s', (query, count) => {
  expect(countOf(new URLSearchParams(query), 'n')).toBe(count)
})

test.each(['n=-1', 'n=1.5', 'n=x', 'n=1234567890123456'])('the count %s is refused', (query) => {
  expect(() => countOf(new URLSearchParams(query), 'n')).toThrow(refused(400, 'query'))
})

test('lines of logs', async () => {
  expect(logQueryOf(new URLSearchParams())).toEqual({ servers: [], after: 0, sinceMs: 0, count: 200, isWaiting: false })
  expect(logQueryOf(new URLSearchParams('server=a&server=b&after=1&since=2&lines=99999&wait=true'))).toEqual({
    servers: ['a', 'b'],
    after: 1,
    sinceMs: 2,
    count: 10_000,
    isWaiting: true,
  })
  const lines: unknown[] = []
  let waits = 0
  const logs = { latest: 3, read: () => [...lines], added: async () => void (++waits === 2 && lines.push('x')) }
  // Cast: only these are read.
  const running = { logs, fleet: { get: (key: string) => (key === 'a' ? {} : undefined) } } as unknown as Parameters<
    typeof readLogs
  >[0]
  const query = logQueryOf(new URLSearchParams('server=a'))
  const { signal } = new AbortController()
  expect(await readLogs(running, query, signal)).toEqual({ lines: [], latest: 3 })
  expect(await readLogs(running, { ...query, isWaiting: true }, signal)).toEqual({ lines: ['x'], latest: 3 })
  lines.length = 0
  expect(await readLogs(running, { ...query, isWaiting: true }, AbortSignal.abort())).toEqual({ lines: [], latest: 3 })
  expect(waits).toBe(2)
  await expect(readLogs(running, { ...query, servers: ['a', 'b'] }, signal)).rejects.toThrow(refused(404, 'gone'))
  // T-14: no part of a line has a secret.
  const said = { number: 1, atMs: 0, server: 'a', from: 'message', level: 'info', logger: 'db of planted-1', text: 'planted-1' }
  lines.push(said)
  const control = localControl(running as never, { redactor: new Redactor(['planted-1']) } as never)
  const hidden = { ...said, logger: 'db of ***', text: '***' }
  expect(await control.logs(query, signal)).toEqual({ lines: [hidden], latest: 3 })
})

test('a reader that reads again is sent the number of calls that it missed, also without another call', () => {
  vi.useFakeTimers()
  let changed: (calls: readonly object[]) => void = () => undefined
  const observer = {
    feed: { readers: 0, subscribe: (reader: typeof changed) => ((changed = reader), () => undefined) },
    maxReaders: 1,
    latest: 0,
    bodies: 'off',
    row: (call: object) => call,
  }
  const sent: object[] = []
  const sink = { isStalled: false, send: (message: object) => void sent.push(message) }
  const options = { viewer: OPERATOR, filter: '', isWhole: false, after: undefined }
  const stop = followCalls(observer as never, options, sink)
  sink.isStalled = true
  changed([{ principal: 'a' }, { principal: 'a' }])
  vi.advanceTimersByTime(5_000)
  expect(sent).toHaveLength(1)
  sink.isStalled = false
  vi.advanceTimersByTime(5_000)
  expect(sent.slice(1)).toEqual([{ type: 'gap', missed: 2 }])
  sink.isStalled = true
  changed([{ principal: 'a' }])
  stop()
  expect(vi.getTimerCount()).toBe(0)
})

describe('a page of calls', () => {
  test.each([
    ['', 100, undefined],
    ['limit=0&before=7', 1, 7],
    ['limit=5000', 1_000, undefined],
    ['limit=7', 7, undefined],
  ])('for %j has at most %i', (query, limit, before) => {
    const page = (...args: readonly unknown[]): unknown => args
    // Cast: only this is used.
    const [, , ...rest] = pageOfCalls({ page } as never, OPERATOR, new URLSearchParams(query)) as unknown as unknown[]
    expect(rest).toEqual([limit, before])
  })

  test('a wrong filter is refused with its place', () => {
    expect(() => readFilter('ok sever:a')).toThrow(refused(400, 'filter', 3))
  })

  test('the feed begins with the calls after a number, oldest first, in messages of 200', () => {
    const rows = Array.from({ length: 405 }, (_, at) => ({ id: 405 - at }))
    const observer = {
      feed: { readers: 0, subscribe: () => () => undefined },
      maxReaders: 1,
      latest: 405,
      bodies: 'off',
      page: () => ({ calls: rows }),
    }
    const sent: { type: string; calls?: readonly { id: number }[] }[] = []
    const sink = { isStalled: false, send: (message: object) => sent.push(message as (typeof sent)[number]) }
    const options = { viewer: OPERATOR, filter: '', isWhole: false }
    followCalls(observer as never, { ...options, after: 2 }, sink)
    expect(sent.map(({ type, calls }) => [type, calls?.[0]?.id, calls?.length])).toEqual([
      ['hello', undefined, undefined],
      ['calls', 3, 200],
      ['calls', 203, 200],
      ['calls', 403, 3],
    ])
    for (const after of [undefined, 405]) followCalls(observer as never, { ...options, after }, sink)
    expect(sent.slice(4).map(({ type }) => type)).toEqual(['hello', 'hello'])
    // Of more than a page the newest are sent, behind the number of the others.
    const two = {
      ...observer,
      page: (_v: object, _f: object, most: number, before = Infinity) => {
        const older = rows.filter(({ id }) => id < before)
        const calls = older.slice(0, most === Infinity ? undefined : 100)
        return { calls, next: calls.length < older.length ? calls.at(-1)?.id : null }
      },
    }
    const later: object[] = []
    followCalls(two as never, { ...options, after: 200 }, { isStalled: false, send: (message) => later.push(message) })
    expect(later).toMatchObject([{ type: 'hello' }, { type: 'gap', missed: 105 }, { type: 'calls', calls: { length: 100 } }])
    let refusals = 0
    const full = { ...observer, maxReaders: 0, refusedReader: () => refusals++ }
    expect(() => followCalls(full as never, { ...options, after: 2 }, sink)).toThrow(refused(503, 'busy'))
    expect([refusals, sent.length]).toEqual([1, 6])
  })
})

describe('POST /can', () => {
  test('has what is left out filled in', () => {
    expect(readQuestion('{"name":"a"}')).toEqual({
      principal: 'local',
      name: 'a',
      args: '{}',
      toolset: undefined,
      facts: { claims: {}, scopes: [], address: '', host: '' },
    })
    const whole = {
      name: 'a',
      arguments: { x: 1 },
      toolset: 't',
      principal: 'p',
      claims: { c: 1 },
      scopes: ['s'],
      address: 'd',
      host: 'h',
    }
    expect(readQuestion(JSON.stringify(whole))).toEqual({
      principal: 'p',
      name: 'a',
      args: '{"x":1}',
      toolset: 't',
      facts: { claims: { c: 1 }, scopes: ['s'], address: 'd', host: 'h' },
    })
  })

  test.each([
    '[]',
    '{}',
    '{"name":1}',
    '{"name":"a","arguments":[]}',
    '{"name":"a","claims":1}',
    '{"name":"a","scopes":"s"}',
    '{"name":"a","scopes":[1]}',
    '{"name":"a","toolset":1}',
  ])('%s is refused', (body) => {
    expect(() => readQuestion(body)).toThrow(refused(400, 'body'))
  })
})

test.each([
  ['{"id":7}', { id: 7, params: undefined, isConfirmed: false }],
  ['{"id":7,"params":{"a": 1.0},"confirm":true}', { id: 7, params: '{"a": 1.0}', isConfirmed: true }],
  ['{"id":7,"confirm":"true"}', { id: 7, params: undefined, isConfirmed: false }],
])('the replay %s is read', (body, request) => {
  expect(readReplay(body)).toEqual(request)
})

test.each(['[]', '{}', '{"id":"x"}', '{"id":1.5}'])('the replay %s is refused', (body) => {
  expect(() => readReplay(body)).toThrow(refused(400, 'body'))
})

test('calls that went to a server are counted, with the tool and the kind of error they have', () => {
  const since: number[] = []
  const call = (more: object) => ({
    method: 'tools/call',
    name: 'a',
    server: 'one',
    atMs: 5,
    receivedMs: 10,
    writtenMs: 30,
    ...more,
  })
  const calls = [
    call({ end: { outcome: 'ok' } }),
    call({ server: undefined }),
    call({ method: 'resources/read', end: { outcome: 'error' } }),
    call({ end: { outcome: 'failed', kind: 'timeout' } }),
    call({ end: undefined }),
  ]
  const observer = { since: (ms: number) => (since.push(ms), calls) }
  const before = performance.now()
  // Cast: only this is read of it.
  expect(timedCalls({ observer } as never, 60_000)).toEqual(
    [
      { tool: 'a', error: undefined },
      { tool: undefined, error: 'error' },
      { tool: 'a', error: 'timeout' },
      { tool: 'a', error: undefined },
    ].map((facts) => ({ server: 'one', atMs: 5, totalMs: 20, ...facts })),
  )
  expect(since[0]).toBeGreaterThanOrEqual(before - 60_000)
  expect(since[0]).toBeLessThanOrEqual(performance.now() - 60_000)
})

test('figures of calls are by server, by tool and by error, with quantiles by nearest rank', () => {
  const call = (tool: string | undefined, totalMs: number, error?: string, server = 'one'): TimedCall => ({
    server,
    tool,
    atMs: totalMs,
    totalMs,
    error,
  })
  const downstream = (key: string, inFlight: number, callers: readonly object[] = []) => {
    const one = { options: { key }, health$: { value: { state: 'healthy' } }, dialer: { processes: [] }, inFlight }
    const personal = callers.length === 0 ? undefined : { all: callers, find: () => undefined }
    return { ...one, all: [one, ...callers], personal }
  }
  const downstreams = [downstream('one', 1, [downstream('one', 2)]), downstream('idle', 0)]
  const calls = [
    ...Array.from({ length: 20 }, (_, at) => call('a', 20 - at)),
    call('b', 50.006, 'timeout'),
    call('b', 40, 'tool_error'),
    call(undefined, 30, 'timeout'),
    call('a', 5, undefined, 'gone'),
  ]
  // Cast: only this is read of it.
  const fleet = { downstreams$: { value: downstreams } } as unknown as Parameters<typeof statsOf>[0]['fleet']
  // Cast: only this is read of it.
  const configuration = { host: {} } as unknown as Parameters<typeof statsOf>[0]['configuration']
  expect(statsOf({ fleet, configuration }, 1, calls)).toEqual({
    windowMs: 1,
    servers: [
      { server: 'one', state: 'healthy', calls: 23, errors: 3, p50: 12, p95: 40, inFlight: 3, memoryBytes: null },
      { server: 'idle', state: 'healthy', calls: 0, errors: 0, p50: null, p95: null, inFlight: 0, memoryBytes: null },
    ],
    tools: [
      { tool: 'a', server: 'one', calls: 20, errors: 0, p50: 10, p95: 19, lastAt: '1970-01-01T00:00:00.001Z' },
      { tool: 'b', server: 'one', calls: 2, errors: 2, p50: 40, p95: 50.01, lastAt: '1970-01-01T00:00:00.040Z' },
      { tool: 'a', server: 'gone', calls: 1, errors: 0, p50: 5, p95: 5, lastAt: '1970-01-01T00:00:00.005Z' },
    ],
    errors: [
      { server: 'one', kind: 'timeout', count: 2 },
      { server: 'one', kind: 'tool_error', count: 1 },
    ],
  })
})

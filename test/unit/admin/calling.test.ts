/** Calls that an operator makes: as a host on this machine would, again from what was captured, and changes of the catalog that are watched. */
import { Subject } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { callMethod, callTool } from '../../../src/admin/calls/call-tool.ts'
import { replay } from '../../../src/admin/calls/replay.ts'
import { HistoryKeeper } from '../../../src/admin/catalog/history.ts'
import type { Gateway } from '../../../src/gateway/gateway.ts'
import type { Feed } from '../../../src/gateway/lists/feed.ts'
import { Observer } from '../../../src/observe/observer.ts'
import { DEFAULT_OBSERVE } from '../../../src/observe/options.ts'
import { OPERATOR } from '../../../src/observe/viewer.ts'
import { complete, EVERYTHING, Refusal, ServerError } from '../../../src/rpc/call.ts'
import type { Call, Outcome } from '../../../src/rpc/call.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const SIGNAL = new AbortController().signal

/** A gateway that answers every call with one outcome, and what it was called with. */
const scene = (outcome: Outcome | Error = complete(Payload.at(Buffer.from('{"n": 1.0}')))) => {
  const calls: Call[] = []
  const gateway = {
    handle: (call: Call) => {
      calls.push(call)
      return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome)
    },
    scopeFor: (_: unknown, { server, toolset }: { server?: string; toolset?: string }) =>
      toolset === 'gone' ? undefined : { server, toolset },
    feed: { viewOf: () => ({ isWrite: (name: string) => name === 'write' }) },
  }
  let ref = 10
  const observer = new Observer({
    options: () => ({ ...DEFAULT_OBSERVE, capture: { ...DEFAULT_OBSERVE.capture, bodies: 'all' } }),
    hide: (text) => text,
    toolsetOf: ({ toolset }) => toolset,
    passed: () => undefined,
    nextRef: () => ++ref,
  })
  // Cast: only these are used of the gateway.
  return { gateway: gateway as unknown as Gateway, calls, observer, nextRef: () => ++ref }
}
const paramsOf = (call: Call | undefined): unknown =>
  JSON.parse(Buffer.concat([call?.params.parts() ?? []].flat(2)).toString()) as unknown

describe('a tool', () => {
  test('is called by name, with its arguments as they are written, and with a host where one is named', async () => {
    const { gateway, calls } = scene()
    const end = await callTool(gateway, { tool: 'a "b"', args: '{"x": 1.0}', ref: 7 }, SIGNAL)
    expect(end).toEqual({ kind: 'result', isError: false, result: Buffer.from('{"n": 1.0}') })
    expect(calls[0]).toMatchObject({
      ref: 7,
      method: 'tools/call',
      target: 'a "b"',
      caller: { principal: 'local', scope: EVERYTHING },
    })
    expect(calls[0]?.caller.facts).toBeUndefined()
    expect(paramsOf(calls[0])).toEqual({ name: 'a "b"', arguments: { x: 1 } })
    await callTool(gateway, { tool: 'a', args: '{}', host: 'cursor', ref: 8 }, SIGNAL)
    expect(calls[1]?.caller.facts).toEqual({ claims: {}, scopes: [], address: '', host: 'cursor' })
  })

  test.each<[outcome: Outcome | Error, end: object, captured: string]>([
    [complete(Payload.of({ isError: true })), { kind: 'result', isError: true }, 'tool_error'],
    [complete(Payload.of({ isError: 'true' })), { kind: 'result', isError: false }, 'ok'],
    [
      { kind: 'input_required', result: Payload.of({}), state: 's' },
      { kind: 'refused', message: 'a asks for input, which is not possible here' },
      'input_required',
    ],
    [new Refusal(-32602, 'no such tool'), { kind: 'refused', message: 'no such tool' }, 'refused'],
    [new ServerError(5, 'no', Payload.of({})), { kind: 'error', message: 'no (5)' }, 'error'],
    [new Failure('timeout', 'late'), { kind: 'timeout', message: 'late' }, 'failed'],
    [
      new Failure('timeout', 'late').at({ key: 'one', displayName: 'One' }),
      { kind: 'timeout', message: 'server "one": late' },
      'failed',
    ],
  ])('that ends with %s', async (outcome, end, captured) => {
    const { gateway, observer } = scene(outcome)
    const called = { method: 'tools/call', target: 'a', params: Payload.of({ name: 'a' }), scope: EVERYTHING }
    expect(await callMethod({ gateway, observer, ref: 7, replayOf: 3 }, called, SIGNAL)).toMatchObject(end)
    expect(observer.find(7, OPERATOR)).toMatchObject({
      state: 'done',
      outcome: captured,
      replayOf: 3,
      request: { text: expect.stringContaining('"name":"a"') as unknown },
    })
    expect(observer.find(7, OPERATOR)?.response === undefined).toBe(outcome instanceof Error)
  })

  test.each(['', 'no json', '{"x":', '{"x":1}}', '[]', '"x"', '{"x":01}', '{},"name":"b"'])(
    'T-20 is not called with the arguments %j, which are no JSON object',
    async (args) => {
      const { gateway, calls } = scene()
      const called = callTool(gateway, { tool: 'a', args, ref: 7 }, SIGNAL)
      await expect(called).rejects.toMatchObject({ status: 400, code: 'body' })
      expect(calls).toEqual([])
    },
  )

  test('an error that nobody foresaw is thrown', async () => {
    await expect(callTool(scene(new Error('bug')).gateway, { tool: 'a', args: '{}', ref: 7 }, SIGNAL)).rejects.toThrow('bug')
  })
})

describe('a captured call', () => {
  /** A call of `target` that was captured, and how it is made again. */
  const captured = async (
    target: string,
    method = 'tools/call',
    facts: object = {},
    message: object | null = { name: target, arguments: { a: 1 }, _meta: { x: 1 } },
  ) => {
    const { gateway, calls, observer, nextRef } = scene()
    const begun = {
      ref: 1,
      method,
      principal: 'p',
      scope: EVERYTHING,
      revision: '2026-07-28',
      session: undefined,
      clientInfo: undefined,
      transport: undefined,
      ...facts,
    }
    const recording = observer.begin({
      ...begun,
      message: message === null ? undefined : Buffer.from(JSON.stringify({ id: 1, params: message })),
    })
    recording.answered(undefined)
    const again = (more: { id?: number; params?: string; isConfirmed?: boolean } = {}, viewer = OPERATOR) =>
      replay(
        { gateway, observer, context: { observer, nextRef } } as never,
        viewer,
        { id: 1, params: undefined, isConfirmed: false, ...more },
        SIGNAL,
      )
    return { again, calls, observer }
  }
  const refused = (status: number, code: string) => expect.objectContaining({ status, code }) as Error

  test('is made again without its _meta, where it was made, and captured under a number of its own', async () => {
    const { again, calls, observer } = await captured('read', 'tools/call', { scope: { server: 'one', toolset: 't' } })
    expect(await again()).toMatchObject({ kind: 'result', call: 11 })
    expect([calls[0]?.target, paramsOf(calls[0]), calls[0]?.caller.scope]).toEqual([
      'read',
      { name: 'read', arguments: { a: 1 } },
      { server: 'one', toolset: 't' },
    ])
    expect(observer.find(11, OPERATOR)).toMatchObject({ replayOf: 1 })
  })

  test('may be edited, and one that may do more than read is confirmed', async () => {
    const { again, calls } = await captured('write')
    await expect(again()).rejects.toThrow(refused(409, 'confirm'))
    await again({ isConfirmed: true })
    await again({ params: '{"name":"read"}' })
    expect(calls.map(({ target }) => target)).toEqual(['write', 'read'])
    const prompt = await captured('write', 'prompts/get')
    expect(await prompt.again()).toMatchObject({ kind: 'result' })
  })

  test('T-14 with values that were hidden is not made again unless they are entered, or the mark is meant', async () => {
    const { again, calls } = await captured('read', 'tools/call', {}, { name: 'read', arguments: { password: 'hunter2' } })
    await expect(again({ isConfirmed: true })).rejects.toThrow(refused(409, 'hidden'))
    const params = '{"name":"read","arguments":{"password":"***"}}'
    await expect(again({ params })).rejects.toThrow(refused(409, 'confirm'))
    expect(calls).toEqual([])
    await again({ params, isConfirmed: true })
    await again({ params: params.replace('***', 'hunter2') })
    expect(calls.map((call) => paramsOf(call))).toEqual(
      ['***', 'hunter2'].map((password) => ({ name: 'read', arguments: { password } })),
    )
  })

  test('of a resource is named by its URI', async () => {
    const { again, calls } = await captured('', 'resources/read', {}, { uri: 'a://x' })
    await again()
    expect(calls[0]?.target).toBe('a://x')
  })

  test.each<[what: string, make: () => ReturnType<typeof captured>, more: object, status: number, code: string]>([
    ['of a list', () => captured('a', 'tools/list'), {}, 400, 'body'],
    ['of another number', () => captured('a'), { id: 9 }, 404, 'gone'],
    [
      'whose toolset is gone',
      () => captured('a', 'tools/call', { scope: { server: undefined, toolset: 'gone' } }),
      {},
      404,
      'gone',
    ],
    ['with params that are no object', () => captured('a'), { params: '[]' }, 400, 'body'],
    ['with params without a name', () => captured('a'), { params: '{}' }, 400, 'body'],
    ['whose message was not kept', () => captured('a', 'tools/call', {}, null), {}, 404, 'gone'],
  ])('%s is not made again', async (_what, make, more, status, code) => {
    const { again, calls } = await make()
    await expect(again(more)).rejects.toThrow(refused(status, code))
    expect(calls).toEqual([])
  })

  test('of another caller is not made again', async () => {
    const { again } = await captured('a')
    await expect(again({}, { principal: 'q', isOperator: false })).rejects.toThrow(refused(404, 'gone'))
  })
})

describe('changes of the catalog', () => {
  /** A catalog whose tools are these texts by name. */
  const watching = (first: Readonly<Record<string, string>>) => {
    const catalog$ = new Subject<undefined>()
    let tools = first
    const list = (kind: string) => {
      const entries = kind === 'tools' ? Object.entries(tools) : []
      return {
        digest: JSON.stringify(entries),
        rows: entries.map(([exposed]) => ({ exposed, server: { key: 'one' } })),
        entries: entries.map(([, text]) => Buffer.from(text)),
      }
    }
    const feed = { catalog$, whole: () => ({ list, cost: { tools: Object.keys(tools).length, tokens: 5 } }) }
    // Cast: only these are used.
    const keeper = new HistoryKeeper(feed as unknown as Feed)
    const become = (next: Readonly<Record<string, string>>): void => {
      tools = next
      catalog$.next(undefined)
    }
    return { keeper, become, catalog$ }
  }

  test('are kept from when they are watched, with each entry that changed', () => {
    const { keeper, become } = watching({})
    become({ a: '1' })
    expect(keeper.all).toEqual({ since: null, changes: [] })
    keeper.watch(true)
    become({ a: '1', b: '12345678' })
    become({ a: '1', b: '12345678' })
    expect(keeper.all).toEqual({ since: expect.any(String) as unknown, changes: [] })
    become({ a: '12345', c: '1' })
    expect(keeper.all.changes).toEqual([
      {
        at: expect.any(String) as unknown,
        tools: 2,
        tokens: 5,
        isOrder: false,
        more: 0,
        entries: [
          { kind: 'tools', name: 'a', server: 'one', change: 'changed', tokens: 1, from: '1', to: '12345' },
          { kind: 'tools', name: 'b', server: 'one', change: 'removed', tokens: -2, from: '12345678', to: null },
          { kind: 'tools', name: 'c', server: 'one', change: 'added', tokens: 1, from: null, to: '1' },
        ],
      },
    ])
    become({ c: '1', a: '12345' })
    expect(keeper.all.changes[1]).toMatchObject({ isOrder: true, entries: [], more: 0 })
  })

  test('are bounded in number, in entries and in the length of definitions', () => {
    const { keeper, become } = watching({})
    keeper.watch(true)
    become({})
    become(Object.fromEntries(Array.from({ length: 52 }, (_, at) => [`t${at}`, 'x'])))
    expect(keeper.all.changes[0]).toMatchObject({ more: 2 })
    expect(keeper.all.changes[0]?.entries).toHaveLength(50)
    for (let at = 0; at < 100; at++) become({ a: String(at) })
    expect(keeper.all.changes).toHaveLength(100)
    become({})
    become({ a: 'x'.repeat(16 * 1024), b: 'x'.repeat(16 * 1024 + 1) })
    expect(keeper.all.changes.at(-1)?.entries.map(({ to }) => to?.length)).toEqual([16 * 1024, undefined])
  })

  test('are dropped when they are not watched any more', () => {
    const { keeper, become, catalog$ } = watching({ a: '1' })
    keeper.watch(true)
    become({ a: '2' })
    become({ a: '3' })
    keeper.watch(true)
    expect(keeper.all.changes).toHaveLength(1)
    keeper.watch(false)
    expect([keeper.all, catalog$.observed]).toEqual([{ since: null, changes: [] }, false])
    keeper.watch(true)
    become({ a: '4' })
    expect(keeper.all.changes).toEqual([])
    keeper[Symbol.dispose]()
    expect(catalog$.observed).toBe(false)
  })
})

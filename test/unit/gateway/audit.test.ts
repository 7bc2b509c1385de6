/** One line for each call, whatever is in it (T-15), without secrets (T-14), and none for what could not be written. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Audit } from '../../../src/gateway/audit.ts'
import type { AuditOptions, AuditSink } from '../../../src/gateway/audit.ts'
import { Redactor } from '../../../src/redactor.ts'
import { complete, Refusal, ServerError } from '../../../src/rpc/call.ts'
import type { Call, Handler } from '../../../src/rpc/call.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { noteDenial, noteRoute } from '../../../src/rpc/record.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { StreamedResult } from '../../../src/wire/result/streamed-result.ts'
import { callOf } from '../../support/calls.ts'
import type { CallFacts } from '../../support/calls.ts'

type Line = Readonly<Record<string, unknown>>

/** An audit log in memory. */
const record = (more: { bodies?: boolean; secrets?: readonly string[]; trouble?: string; hiddenBy?: () => string } = {}) => {
  const texts: string[] = []
  const sink: AuditSink = { write: (line) => void texts.push(line), trouble: more.trouble }
  const { hideJson } = new Redactor(more.secrets)
  const toolsetOf: AuditOptions['toolsetOf'] = ({ toolset }) => toolset
  const audit = new Audit({
    sink,
    bodies: more.bodies ?? false,
    hideJson,
    toolsetOf,
    hiddenBy: more.hiddenBy ?? (() => undefined),
  })
  return {
    audit,
    texts,
    lines: () => texts.map((text) => JSON.parse(text) as Line),
    through: (inner: Handler, call: Call) => audit.layer(inner)(call),
  }
}

const byBob = (facts: CallFacts = {}): Call =>
  callOf({
    ref: 7,
    params: Payload.of({ name: 'a__x', arguments: { text: 'hello' } }),
    ...facts,
    caller: { principal: 'bob', scope: { server: undefined, toolset: 'ops' }, ...facts.caller },
  })

const answering =
  (result: object): Handler =>
  (call) => {
    noteRoute(call, 'a', 'x')
    return Promise.resolve(complete(Payload.of(result)))
  }
const failing =
  (error: unknown, note?: (call: Call) => void): Handler =>
  (call) => {
    note?.(call)
    return Promise.reject(error)
  }

describe('a call is one line', () => {
  test('who, what, where, how long, how much', async () => {
    const { through, lines } = record()
    await through(answering({ content: [] }), byBob())
    expect(lines()).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
        ref: 7,
        principal: 'bob',
        toolset: 'ops',
        revision: '2026-07-28',
        method: 'tools/call',
        name: 'a__x',
        server: 'a',
        original: 'x',
        decision: 'allowed',
        outcome: 'ok',
        durationMs: expect.any(Number) as unknown,
        bytesIn: '{"name":"a__x","arguments":{"text":"hello"}}'.length,
        bytesOut: '{"content":[]}'.length,
      },
    ])
  })

  const failure = (kind: ConstructorParameters<typeof Failure>[0], option?: string): Failure =>
    new Failure(kind, 'why', { executed: kind === 'lost' ? 'unknown' : 'no', ...(option !== undefined && { limit: option }) })
  test.each<[string, Handler, Line]>([
    ['a tool that failed', answering({ content: [], isError: true }), { decision: 'allowed', outcome: 'tool_error' }],
    ['an error of the server', failing(new ServerError(-5, 'no', Payload.of({}))), { outcome: 'error', code: -5 }],
    ['a server that is lost', failing(failure('lost')), { decision: 'allowed', outcome: 'failed', kind: 'lost', detail: 'why' }],
    [
      'a server that limits us',
      failing(failure('rate_limited')),
      { decision: 'allowed', outcome: 'failed', kind: 'rate_limited' },
    ],
    [
      'a limit of ours',
      failing(failure('rate_limited', 'limits.x')),
      { decision: 'denied', reason: 'rate_limited', rule: 'limits.x' },
    ],
    ['too much at once', failing(failure('overloaded')), { decision: 'denied', reason: 'overloaded', detail: 'why' }],
    ['the end of the process', failing(failure('shutting_down')), { decision: 'denied', reason: 'shutting_down' }],
    [
      'the end of the process, in its middle',
      failing(new Failure('shutting_down', 'x')),
      { decision: 'allowed', outcome: 'failed' },
    ],
    ['a bad request', failing(new Refusal(-32602, 'no such thing')), { decision: 'denied', reason: 'invalid', code: -32602 }],
    [
      'a name that is hidden',
      failing(new Refusal(-32602, 'Unknown tool: x'), (call) => noteDenial(call, 'unknown')),
      { decision: 'denied', reason: 'unknown', rule: 'toolsets.ops', detail: 'Unknown tool: x' },
    ],
    [
      'a fault of ours',
      failing(new TypeError('x is undefined')),
      { decision: 'allowed', outcome: 'failed', detail: 'internal error' },
    ],
  ])('%s', async (_, inner, expected) => {
    const { through, lines } = record({ hiddenBy: () => 'toolsets.ops' })
    await through(inner, byBob()).catch(() => undefined)
    expect(lines()).toEqual([expect.objectContaining(expected)])
  })

  test('what a person declined is denied, however the host is told', async () => {
    const { through, lines } = record()
    const decline: Handler = (call) => {
      noteDenial(call, 'declined', 'toolsets.ops.confirm')
      return Promise.resolve(complete(Payload.of({ content: [], isError: true })))
    }
    await through(decline, byBob())
    expect(lines()).toMatchObject([{ decision: 'denied', reason: 'declined', rule: 'toolsets.ops.confirm' }])
    expect(lines()[0]).not.toHaveProperty('outcome')
  })

  test('given up by its host', async () => {
    const { through, lines } = record()
    const abort = new Cancellation()
    const inner: Handler = () => (abort.abort(), Promise.reject(new Failure('cancelled', 'x')))
    await through(inner, byBob({ signal: abort.signal })).catch(() => undefined)
    expect(lines()).toMatchObject([{ decision: 'allowed', outcome: 'cancelled' }])
  })

  test('the error goes on as it came', async () => {
    const error = new Refusal(-32602, 'x')
    await expect(record().through(failing(error), byBob())).rejects.toBe(error)
  })
})

describe('a result that passes on while it comes is written down when it is over', () => {
  const HEAD = '{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[{"type":"text","text":"'
  const streamed = (head = HEAD): StreamedResult => {
    const free = { pause: () => undefined, resume: () => undefined, abort: () => undefined }
    const result = StreamedResult.begin(Buffer.from(head), '7', free)
    if (!(result instanceof StreamedResult)) throw new Error('it is read whole')
    return result
  }
  const nowhere = { write: () => undefined, end: () => undefined, fail: () => undefined }
  const watch = async (result: StreamedResult) => {
    const { through, lines } = record({ bodies: true })
    await through(() => Promise.resolve(complete(result)), byBob())
    expect(lines()).toEqual([])
    return lines
  }

  test('whole, with its size', async () => {
    const result = streamed()
    const lines = await watch(result)
    result.pipe(nowhere)
    const rest = 'x"}]}}'
    result.push(Buffer.from(rest))
    result.finish()
    expect(lines()).toMatchObject([{ outcome: 'tool_error', bytesOut: HEAD.length + rest.length, omitted: ['result'] }])
  })

  test('whether it failed is not known where it did not say so first', async () => {
    const result = streamed(HEAD.replace('"isError":true,', ''))
    const lines = await watch(result)
    result.push(Buffer.from('x"}]}}'))
    result.finish()
    result.pipe(nowhere)
    expect(lines()).toMatchObject([{ outcome: 'streamed' }])
  })

  test('broken, or given up', async () => {
    const broken = streamed()
    const lines = await watch(broken)
    broken.pipe(nowhere)
    broken.fail(new Failure('lost', 'gone'))
    broken.abort()
    expect(lines()).toMatchObject([{ outcome: 'failed', kind: 'lost', detail: 'gone' }])
    const given = streamed()
    const others = await watch(given)
    given.abort()
    expect(others()).toMatchObject([{ outcome: 'cancelled' }])
  })
})

test('what cannot be written is not done: the server is not called, and the error says why', async () => {
  const { through, lines } = record({ trouble: 'ENOSPC' })
  let calls = 0
  const call = through(() => {
    calls++
    return Promise.resolve(complete(Payload.of({})))
  }, byBob())
  await expect(call).rejects.toMatchObject({
    kind: 'store_unavailable',
    executed: 'no',
    message: 'the audit log cannot be written (ENOSPC), so that no call is made (telemetry.log.audit)',
  })
  expect(calls).toBe(0)
  expect(lines()).toMatchObject([{ decision: 'denied', reason: 'audit', detail: 'ENOSPC' }])
})

test('a request that was turned away is one line; a session is not told by its id', () => {
  const { audit, lines, texts } = record()
  audit.denied({ reason: 'session', status: 404, principal: 'eve', path: '/mcp', session: 'the-session-id' })
  expect(lines()).toMatchObject([{ decision: 'denied', reason: 'session', status: 404, principal: 'eve', path: '/mcp' }])
  expect(lines()[0]?.['session']).toMatch(/^[0-9a-f]{12}$/)
  expect(texts.join('')).not.toContain('the-session-id')
})

describe('bodies', () => {
  const params = Payload.at(Buffer.from('{\r\n  "name": "a__x",\n "arguments": {"n": 1.0, "t": "a\\nb"}\n}'))

  test('are written only if asked for, as they came, in one line', async () => {
    const off = record()
    await off.through(answering({ content: ['secret-result'] }), byBob({ params }))
    expect(off.texts[0]).not.toMatch(/arguments|secret-result/)
    const on = record({ bodies: true })
    await on.through((call) => {
      call.params.set('name', '"x"')
      return answering({ content: ['a result'] })(call)
    }, byBob({ params }))
    expect(on.texts[0]).toContain(
      '"params":{   "name": "a__x",  "arguments": {"n": 1.0, "t": "a\\nb"} },"result":{"content":["a result"]}}',
    )
  })

  test('larger ones are left out, and that is said', async () => {
    const { through, lines } = record({ bodies: true })
    await through(answering({ content: ['x'.repeat(70_000)] }), byBob())
    expect(lines()[0]).toMatchObject({ omitted: ['result'], params: { name: 'a__x' } })
    expect(lines()[0]).not.toHaveProperty('result')
  })

  test('T-14 hold no secret', async () => {
    const { through, texts } = record({ bodies: true, secrets: ['hunter2'] })
    await through(
      answering({ content: [{ 'x-hunter2': 'hunter2' }] }),
      byBob({ params: Payload.of({ a: 'it is hunter2' }), caller: { principal: 'hunter2' } }),
    )
    expect(texts[0]).not.toContain('hunter2')
    expect(JSON.parse(texts[0] ?? '')).toMatchObject({ principal: '***', params: { a: 'it is ***' } })
  })
})

test('T-14 bodies hold no value of a member that is named like a secret', async () => {
  const { through, texts, lines } = record({ bodies: true })
  const inner = JSON.stringify({ refresh_token: 'unknown-2', page_token: 'p2' })
  await through(
    answering({ content: [{ type: 'text', text: inner }], structuredContent: { apiKey: 'unknown-3' } }),
    byBob({
      params: Payload.of({ name: 'a__x', arguments: { user: 'bob', password: 'unknown-1', pin: { client_secret: [1, 2] } } }),
    }),
  )
  expect(texts[0]).not.toContain('unknown-')
  expect(lines()[0]).toMatchObject({
    principal: 'bob',
    params: { arguments: { user: 'bob', password: '***', pin: { client_secret: '***' } } },
    result: {
      content: [{ text: JSON.stringify({ refresh_token: '***', page_token: 'p2' }) }],
      structuredContent: { apiKey: '***' },
    },
  })
})

test('T-15 one event is one line of the audit log, whatever is in it', async () => {
  const strange = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      '\n{"decision":"allowed"}',
      '\r\n',
      '\u2028',
      '\u2029',
      '\u0085',
      '\x1b[2J',
      '\u202e',
      '\ud800',
      '\0',
      '"}\n{"',
    ),
  )
  const spaced = (value: unknown): Buffer => Buffer.from(JSON.stringify(value, null, '\r\n'))
  await fc.assert(
    fc.asyncProperty(strange, strange, strange, fc.boolean(), async (name, text, principal, isDenied) => {
      const { audit, through, texts, lines } = record({ bodies: true, secrets: ['a-secret'] })
      const params = Payload.at(spaced({ name, arguments: { [text]: text } }))
      const inner = isDenied ? failing(new Refusal(-32602, text)) : answering({ content: [text] })
      await through(inner, byBob({ target: name, params, caller: { principal } })).catch(() => undefined)
      audit.denied({ reason: 'path', path: text, detail: text })
      expect(texts).toHaveLength(2)
      for (const line of texts) expect(line).not.toMatch(/[\r\n]/)
      expect(lines()[0]).toMatchObject({ name, principal, decision: isDenied ? 'denied' : 'allowed' })
      expect(lines()[1]).toMatchObject({ path: text, detail: text })
    }),
    { numRuns: 300 },
  )
})

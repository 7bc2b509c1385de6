/** Questions of servers in the words of each host (BRIDGING 3.13, 3.14; 8.4, 8.5). */
import { describe, expect, test } from 'vitest'
import {
  acceptsUrls,
  answerIn,
  Declined,
  elicitationIdFor,
  encodeQuestion,
  inputRequests,
  isAnswerTo,
  noAnswer,
  refusalOf,
  responseOf,
} from '../../../src/era/questions.ts'
import { encodeSampled, encodeSampling } from '../../../src/era/sampling.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import type { Answer, HostSession, Question } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'

const session: HostSession = {
  id: 's',
  scope: EVERYTHING,
  capabilities: {},
  notify: () => undefined,
  ask: () => Promise.reject(new Error('not asked here')),
  updated: () => undefined,
  logLevel: undefined,
  onEnd: () => () => undefined,
}
const ASKER = { key: 'a', label: undefined, revision: undefined }
const textOf = (payload: Payload | undefined): string => Buffer.concat(payload?.parts() ?? []).toString()

/** What a host of `revision` is asked, or the code the server is answered. */
const put = (method: string, params: string | object, revision: Revision, id = 's'): string | number => {
  const question: Question = {
    method,
    params: Payload.at(Buffer.from(typeof params === 'string' ? params : JSON.stringify(params))),
  }
  const host = { revision, session: revision === '2026-07-28' ? undefined : { ...session, id } }
  const worded: Question | Answer = encodeQuestion(question, ASKER, host, () => undefined)
  if ('method' in worded) return textOf(worded.params)
  return 'error' in worded ? Number(worded.error.value('code')) : 0
}
const form = (properties: string): string => `{"message":"m","requestedSchema":{"type":"object","properties":{${properties}}}}`

describe('B094 a form', () => {
  const titled = '"c":{"type":"string","title":"C","oneOf":[{"const":"r","title":"Red"},{"const":"g"}],"default":"r"}'
  const plain = '"n":{"type":"integer","minimum":1.0},"e":{"type":"string","enum":["x"],"enumNames":["X"]}'
  test('of titled options becomes enum and enumNames for 2025-06-18; every other field stays byte for byte', () => {
    const asked = String(put('elicitation/create', form(`${titled},${plain}`), '2025-06-18'))
    const { requestedSchema, ...rest } = JSON.parse(asked) as { requestedSchema: { properties: Record<string, unknown> } }
    expect(rest).toEqual({ message: 'm' })
    expect(requestedSchema.properties['c']).toEqual({
      type: 'string',
      title: 'C',
      enum: ['r', 'g'],
      enumNames: ['Red', 'g'],
      default: 'r',
    })
    expect(asked).toContain(plain)
  })
  test.each(['2025-11-25', '2026-07-28'] as const)('reaches a host of %s as it is, but for its mode', (revision) => {
    expect(put('elicitation/create', form(titled), revision)).toBe(form(titled).replace('{', '{"mode":"form",'))
  })
  test.each([
    ['enum', '"c":{"type":"array","items":{"type":"string","enum":["a","b"]}}'],
    ['titled', '"n":{"type":"integer"},"c":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}'],
  ])('of several choices (%s) is put to newer hosts and refused to the server for 2025-06-18', (_, properties) => {
    expect(put('elicitation/create', form(properties), '2025-06-18')).toBe(-32602)
    expect(put('elicitation/create', form(properties), '2025-11-25')).toContain(properties)
  })
  test('loses the mode that 2025-06-18 does not know', () => {
    expect(put('elicitation/create', { mode: 'form', message: 'm' }, '2025-06-18')).toBe('{"message":"m"}')
  })
})

describe('B087 the id of a URL elicitation', () => {
  const visit = { mode: 'url', message: 'm', url: 'https://x.example/?a=%20b', elicitationId: 'own' }
  const idOf = (text: string | number): unknown => (JSON.parse(String(text)) as { elicitationId?: unknown }).elicitationId
  test('is minted for 2025-11-25, one for each session, also where the server gave none', () => {
    const { elicitationId: _, ...bare } = visit
    const ids = [put('elicitation/create', visit, '2025-11-25'), put('elicitation/create', visit, '2025-11-25', 'other')].map(
      idOf,
    )
    expect(ids).toEqual([expect.stringMatching(/^[\w-]{22}$/), expect.stringMatching(/^[\w-]{22}$/)])
    expect(ids[0]).not.toBe(ids[1])
    expect(idOf(put('elicitation/create', visit, '2025-11-25'))).toBe(ids[0])
    expect(idOf(put('elicitation/create', bare, '2025-11-25'))).toMatch(/^[\w-]{22}$/)
  })
  test('is minted for an older host as well, which declares what its revision does not have', () => {
    expect(idOf(put('elicitation/create', visit, '2025-06-18'))).toBe(idOf(put('elicitation/create', visit, '2025-11-25')))
  })
  test('is another for each session, server and id of the server', () => {
    const ids = [
      ['s', 'a', '1'],
      ['t', 'a', '1'],
      ['s', 'b', '1'],
      ['s', 'a', '2'],
    ].map(([session = '', server = '', original = '']) => elicitationIdFor(session, server, original))
    expect(new Set(ids).size).toBe(4)
  })
  test('is dropped for modern hosts', () => {
    expect(put('elicitation/create', visit, '2026-07-28')).toBe(JSON.stringify({ ...visit, elicitationId: undefined }))
  })
})

test.each([
  ['B097', 'sampling/createMessage', { tools: [] }, { sampling: {} }, -32602],
  ['B097', 'sampling/createMessage', { tools: [] }, { sampling: { tools: {} } }, undefined],
  ['B097', 'sampling/createMessage', { toolChoice: { mode: 'none' } }, { sampling: {} }, -32602],
  ['B097', 'sampling/createMessage', { tools: [], toolChoice: {} }, { sampling: { tools: {} } }, undefined],
  ['B097', 'sampling/createMessage', {}, { sampling: {} }, undefined],
  ['B059', 'sampling/createMessage', {}, { elicitation: {} }, -32601],
  ['B059', 'roots/list', {}, { elicitation: {} }, -32601],
  ['B059', 'elicitation/create', {}, { roots: {} }, -32601],
  ['B093', 'elicitation/create', { mode: 'url' }, { elicitation: {} }, -32602],
  ['B093', 'elicitation/create', { mode: 'url' }, { elicitation: { form: {} } }, -32602],
  ['B093', 'elicitation/create', { mode: 'form' }, { elicitation: { url: {} } }, -32602],
  ['B093', 'elicitation/create', {}, { elicitation: { url: {} } }, -32602],
  ['B093', 'elicitation/create', {}, { elicitation: {} }, undefined],
  ['B093', 'elicitation/create', { mode: 'url' }, { elicitation: { url: {} } }, undefined],
  ['B093', 'elicitation/create', { mode: 'voice' }, { elicitation: { form: {}, url: {} } }, -32602],
  ['B093', 'elicitation/create', { mode: 'voice' }, { elicitation: {} }, -32602],
  ['B093', 'elicitation/create', { mode: 'voice' }, { elicitation: { voice: {} } }, undefined],
  ['B093', 'elicitation/create', { mode: 'toString' }, { elicitation: {} }, -32602],
  ['B093', 'elicitation/create', { mode: null }, { elicitation: {} }, undefined],
])('%s %s with %o of a host that declares %o: %s', (_, method, params, capabilities, code) => {
  const refusal = refusalOf({ method, params: Payload.of(params) }, capabilities)
  expect(refusal && 'error' in refusal ? refusal.error.value('code') : undefined).toBe(code)
})

describe('B090 the name of the server', () => {
  const asked = (label: string | undefined, message: string | undefined) => {
    const question: Question = { method: 'elicitation/create', params: Payload.of({ mode: 'url', message }) }
    encodeQuestion(question, { ...ASKER, label }, { revision: '2025-11-25', session }, () => undefined)
    return (JSON.parse(textOf(question.params)) as { message?: string }).message
  }
  test.each([
    ['Bank', 'Sure?', '[Bank] Sure?'],
    ['Bank', undefined, '[Bank] '],
    [undefined, 'Sure?', 'Sure?'],
    ['Ba\u202en\nk', 'Su\u202ere?\nNo?', '[Bank] Sure?\nNo?'],
  ])('B261 %j stands before the message %j: %j', (label, message, shown) => {
    expect(asked(label, message)).toBe(shown)
  })
})

describe('B277 at a bridge', () => {
  const encode = (params: object, server: Revision | undefined, host: Revision, isBridge = true) => {
    const question: Question = { method: 'elicitation/create', params: Payload.of(params) }
    encodeQuestion(question, { ...ASKER, revision: server, isBridge }, { revision: host, session }, () => undefined)
    return JSON.parse(textOf(question.params)) as object
  }
  test.each<[params: object, server: Revision | undefined, host: Revision, shown: object]>([
    [{ message: 'm' }, '2025-11-25', '2025-11-25', { message: 'm' }],
    [{ message: 'm' }, undefined, '2025-11-25', { message: 'm' }],
    [{ message: 'm', mode: 'form' }, '2025-11-25', '2025-06-18', { message: 'm' }],
    [
      { mode: 'url', url: 'u', elicitationId: 'own' },
      '2025-11-25',
      '2025-11-25',
      { mode: 'url', url: 'u', elicitationId: 'own' },
    ],
    [
      { mode: 'url', url: 'u', elicitationId: 'own' },
      '2025-11-25',
      '2025-06-18',
      { mode: 'url', url: 'u', elicitationId: 'own' },
    ],
  ])('%j of a server of %s reaches a host of %s as %j', (params, server, host, shown) => {
    expect(encode(params, server, host)).toEqual(shown)
  })
  test('without an id a visit has one all the same, and elsewhere always one of ours', () => {
    const visit = { mode: 'url', url: 'u' }
    expect(encode(visit, '2025-11-25', '2025-11-25')).toHaveProperty('elicitationId')
    expect(encode({ ...visit, elicitationId: 'own' }, '2025-11-25', '2025-11-25', false)).not.toHaveProperty(
      'elicitationId',
      'own',
    )
    expect(encode({ message: 'm' }, '2025-11-25', '2025-11-25', false)).toEqual({ mode: 'form', message: 'm' })
  })
})

test('a question loses its progress token and its task, and one without params stays', () => {
  expect(put('roots/list', { task: {}, _meta: { progressToken: 1, x: 2 } }, '2025-11-25')).toBe('{"_meta":{"x":2}}')
  const bare: Question = { method: 'roots/list', params: undefined }
  expect(encodeQuestion(bare, ASKER, { revision: '2025-11-25', session }, () => undefined)).toBe(bare)
})

test.each<[properties: string, notes: readonly string[]]>([
  ['"c":{"type":"array","items":{}}', ['severalChoices']],
  ['"c":{"type":"string","oneOf":[{"const":"r"}]}', ['questionForm']],
  ['"c":{"type":"string"}', []],
])('B094 of a form with %s, %j is noted', (properties, expected) => {
  const notes: string[] = []
  const question: Question = { method: 'elicitation/create', params: Payload.at(Buffer.from(form(properties))) }
  encodeQuestion(question, ASKER, { revision: '2025-06-18', session }, (note) => notes.push(note))
  expect(notes).toEqual(expected)
})

test('a form of 2025-06-18 keeps fields without titled options, whatever they are', () => {
  const odd = form('"a":5,"b":{"type":"string","oneOf":"x"},"c":{"oneOf":[{"title":"T"}]}')
  const asked = JSON.parse(String(put('elicitation/create', odd, '2025-06-18'))) as { requestedSchema: { properties: object } }
  expect(asked.requestedSchema.properties).toEqual({
    a: 5,
    b: { type: 'string', oneOf: 'x' },
    c: { enum: [null], enumNames: ['T'] },
  })
  expect(put('elicitation/create', '{"message":"m"}', '2025-06-18')).toBe('{"message":"m"}')
})

test.each<[capabilities: object, hasSession: boolean, revision: Revision, accepts: boolean]>([
  [{ elicitation: { url: {} } }, true, '2025-11-25', true],
  [{ elicitation: { url: {} } }, true, '2025-06-18', false],
  [{ elicitation: { url: {} } }, false, '2026-07-28', true],
  [{ elicitation: {} }, true, '2025-11-25', false],
  [{}, false, '2026-07-28', false],
])('a host with %j, in a session: %s, of %s accepts URLs: %s', (capabilities, hasSession, revision, accepts) => {
  const caller = {
    principal: 'p',
    capabilities: { ...capabilities },
    revision,
    scope: EVERYTHING,
    session: hasSession ? session : undefined,
  }
  expect(acceptsUrls(caller)).toBe(accepts)
})

describe('an answer', () => {
  const [ELICIT, SAMPLE, ROOTS] = ['elicitation/create', 'sampling/createMessage', 'roots/list']
  test.each<[method: string, response: object, fits: boolean]>([
    [ELICIT, { action: 'accept', content: {} }, true],
    [ELICIT, { action: 'accept' }, true],
    [ELICIT, { action: 'accept', content: null }, true],
    [ELICIT, { action: 'accept', content: 5 }, false],
    [ELICIT, { action: 'decline', content: 5 }, true],
    [ELICIT, { action: 'cancel' }, true],
    [ELICIT, { action: 'yes' }, false],
    [ELICIT, { content: {} }, false],
    [SAMPLE, { role: 'assistant', content: {} }, true],
    [SAMPLE, { role: 'assistant' }, false],
    [SAMPLE, { content: {} }, false],
    [ROOTS, { roots: [] }, true],
    [ROOTS, { roots: {} }, false],
    [ROOTS, {}, false],
  ])('to %s of %j fits: %s', (method, response, fits) => {
    const question = { method, params: undefined }
    expect(isAnswerTo(question, Payload.of(response))).toBe(fits)
    const read = (): string => textOf(answerIn(Payload.of({ k: response }), 'k', question))
    if (fits) expect(read()).toBe(JSON.stringify(response))
    else
      expect(read).toThrow(
        expect.objectContaining({ code: -32602, message: `inputResponses["k"] is not a valid answer to ${method}` }) as Error,
      )
    expect(() => answerIn(undefined, 'k', question)).toThrow(/not a valid answer/)
  })

  test('that is an error ends the call, but for a dialog, which is cancelled', () => {
    const result = Payload.of({ n: 1 })
    expect(responseOf(SAMPLE, { result })).toBe(result)
    expect(textOf(responseOf(ELICIT, { error: Payload.of({ message: 'no' }) }))).toBe('{"action":"cancel"}')
    expect(() => responseOf(SAMPLE, { error: Payload.of({ message: 'no' }) })).toThrow(new Declined('no'))
    expect(() => responseOf(ROOTS, { error: Payload.of({ code: 1 }) })).toThrow(new Declined('the host declined'))
  })

  test.each([
    [ELICIT, { result: { action: 'cancel' } }],
    [SAMPLE, { error: { code: -1, message: 'not answered' } }],
    [ROOTS, { error: { code: -32603, message: 'not answered' } }],
  ])('that never comes to %s is %j', (method, expected) => {
    const shown = Object.entries(noAnswer({ method: method, params: undefined })).map(([kind, payload]) => [
      kind,
      JSON.parse(textOf(payload)) as unknown,
    ])
    expect(Object.fromEntries(shown)).toEqual(expected)
  })

  test('is asked for by key, with the params of its question', () => {
    const requests = inputRequests([
      ['a', { question: { method: ELICIT, params: Payload.of({ message: 'm' }) } }],
      ['b', { question: { method: ROOTS, params: undefined } }],
    ])
    expect(JSON.parse(Buffer.concat([requests].flat(2)).toString())).toEqual({
      a: { method: ELICIT, params: { message: 'm' } },
      b: { method: ROOTS },
    })
  })
})

describe('sampling', () => {
  const text = { type: 'text', text: 'x' }
  const noted = (params: object, revision: Revision, isBridge?: boolean) => {
    const notes: string[] = []
    const payload = Payload.of(params)
    const reason = encodeSampling(payload, revision, (note) => notes.push(note), isBridge)
    return { reason, notes, params: JSON.parse(textOf(payload)) as unknown }
  }

  test.each([
    ['thisServer', undefined, true],
    ['thisServer', false, true],
    ['thisServer', true, false],
    ['none', undefined, false],
  ])('B095 with the context %s, at a bridge: %s, loses it: %s', (includeContext, isBridge, isLost) => {
    expect(noted({ includeContext }, '2025-11-25', isBridge)).toEqual({
      reason: undefined,
      notes: isLost ? ['context'] : [],
      params: isLost ? {} : { includeContext },
    })
  })

  test.each<[content: unknown, revision: Revision, shown: unknown]>([
    [text, '2025-06-18', text],
    [[text], '2025-06-18', text],
    [[text], '2025-11-25', [text]],
    [[text, text], '2025-11-25', [text, text]],
    [[text, text], '2025-06-18', /several content blocks/],
    [[], '2025-06-18', /several content blocks/],
    [{ type: 'tool_use' }, '2025-06-18', /type "tool_use"/],
    [[{ type: 'tool_result' }], '2025-03-26', /type "tool_result"/],
    [{ type: 'audio' }, '2024-11-05', /type "audio"/],
    [{ type: 'audio' }, '2025-03-26', { type: 'audio' }],
    ['x', '2024-11-05', 'x'],
    [undefined, '2024-11-05', undefined],
  ])('of %j to a host of %s is %j', (content, revision, shown) => {
    const { reason, params } = noted({ messages: [5, { role: 'user', content }] }, revision)
    if (shown instanceof RegExp) expect(reason).toMatch(shown)
    else
      expect([reason, params]).toEqual([
        undefined,
        { messages: [5, { role: 'user', ...(content !== undefined && { content: shown }) }] },
      ])
  })

  test('that a host has no form for is refused to the server, and noted', () => {
    const notes: string[] = []
    const question: Question = { method: 'sampling/createMessage', params: Payload.of({ messages: [{ content: [] }] }) }
    expect(encodeQuestion(question, ASKER, { revision: '2025-06-18', session }, (note) => notes.push(note))).toHaveProperty(
      'error',
    )
    expect(notes).toEqual(['samplingShape'])
  })

  test.each<[content: unknown, revision: Revision | undefined, shown: unknown]>([
    [[text], '2025-06-18', text],
    [text, '2025-06-18', text],
    [[text], '2025-11-25', [text]],
    [[text], undefined, [text]],
    [undefined, '2025-06-18', undefined],
    [[text, text], '2025-06-18', 'error'],
    [[], '2025-06-18', 'error'],
  ])('answered with %j reaches a server of %s as %j', (content, revision, shown) => {
    const answer = encodeSampled({ result: Payload.of({ role: 'assistant', content }) }, revision)
    if (shown === 'error') expect(answer).toHaveProperty('error')
    else expect(JSON.parse(textOf('result' in answer ? answer.result : undefined))).toEqual({ role: 'assistant', content: shown })
    const error = { error: Payload.of({ code: 1 }) }
    expect(encodeSampled(error, revision)).toBe(error)
  })
})

/** Questions of servers in the words of each host (BRIDGING 3.13, 3.14; 8.4, 8.5). */
import { describe, expect, test } from 'vitest'
import { refusalOf, encodeQuestion } from '../../../src/era/questions.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import type { Answer, HostSession, Question } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'

const session: HostSession = {
  id: 's',
  scope: EVERYTHING,
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
  test('is dropped for modern hosts', () => {
    expect(put('elicitation/create', visit, '2026-07-28')).toBe(JSON.stringify({ ...visit, elicitationId: undefined }))
  })
})

test.each([
  ['B097', 'sampling/createMessage', { tools: [] }, { sampling: {} }, -32602],
  ['B097', 'sampling/createMessage', { tools: [] }, { sampling: { tools: {} } }, undefined],
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
])('%s %s with %o of a host that declares %o: %s', (_, method, params, capabilities, code) => {
  const refusal = refusalOf({ method, params: Payload.of(params) }, capabilities)
  expect(refusal && 'error' in refusal ? refusal.error.value('code') : undefined).toBe(code)
})

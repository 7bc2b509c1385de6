/** What the status of a server's answer means for the request (BRIDGING 7.2). */
import { describe, expect, test } from 'vitest'
import { bodyMayAnswer, failureOfStatus, statusDecides } from '../../../src/transport/http1/client/http-failure.ts'

const NOW = Date.UTC(2026, 0, 1)

test.each([
  [200, 'bad_response', 'unknown', false],
  [299, 'bad_response', 'unknown', false],
  [300, 'bad_response', 'no', false],
  [303, 'bad_response', 'unknown', false],
  [400, 'bad_response', 'no', false],
  [401, 'auth_required', 'no', false],
  [403, 'forbidden', 'no', false],
  [404, 'not_found', 'no', false],
  [405, 'not_found', 'no', false],
  [406, 'bad_response', 'no', false],
  [408, 'bad_response', 'no', true],
  [410, 'not_found', 'no', false],
  [413, 'too_large', 'no', false],
  [415, 'bad_response', 'no', false],
  [425, 'bad_response', 'no', true],
  [429, 'rate_limited', 'no', true],
  [431, 'too_large', 'no', false],
  [499, 'bad_response', 'no', false],
  [500, 'downstream_error', 'unknown', false],
  [502, 'downstream_error', 'unknown', true],
  [503, 'downstream_error', 'unknown', true],
  [504, 'downstream_error', 'unknown', true],
])('HTTP %i is %s, executed: %s, retryable: %s', (status, kind, executed, retryable) => {
  const failure = failureOfStatus({ status, headers: {} }, false, NOW)
  expect(failure).toMatchObject({ kind, executed, retryable, message: `the server answered HTTP ${status}` })
  expect(failure.facts).toEqual({ executed, retryable, status })
})

test.each([
  ['3', 3_000],
  ['0', 0],
  ['Thu, 01 Jan 2026 00:00:07 GMT', 7_000],
  ['Wed, 31 Dec 2025 23:59:59 GMT', 0],
  ['soon', undefined],
  [undefined, undefined],
])('Retry-After: %s is %s ms', (value, ms) => {
  const { facts } = failureOfStatus({ status: 429, headers: value === undefined ? {} : { 'retry-after': value } }, false, NOW)
  expect(facts.retryAfterMs).toBe(ms)
})

test.each([
  [401, 'Bearer', 'auth_required', 'Bearer'],
  [403, 'Bearer error="insufficient_scope", scope="a"', 'scope_required', 'Bearer error="insufficient_scope", scope="a"'],
  [403, 'Bearer error=insufficient_scope', 'scope_required', 'Bearer error=insufficient_scope'],
  [403, 'Bearer error="invalid_token"', 'forbidden', 'Bearer error="invalid_token"'],
  [404, 'Bearer error="insufficient_scope"', 'not_found', undefined],
])('HTTP %i with the challenge %s is %s', (status, challenge, kind, kept) => {
  const head = { status, headers: { 'www-authenticate': challenge } }
  const failure = failureOfStatus(head, false, NOW)
  expect([failure.kind, failure.facts.challenge]).toEqual([kind, kept])
  // Neither a sign-in nor a scope comes of what the body says.
  expect(statusDecides(head, false, Buffer.alloc(0))).toBe(kind === 'auth_required' || kind === 'scope_required')
})

describe('a request with a session id has lost its session', () => {
  const error = (text: string, id?: unknown) => JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_000, message: text } })
  test.each([
    [404, '', true],
    [400, 'Bad Request: No valid session ID provided', true],
    [400, error('Server not initialized', null), true],
    [400, error('Missing session_id'), true],
    [400, JSON.stringify({ error: 'unknown sessionId' }), true],
    [400, error('no session', 7), false],
    [400, error('no tool'), false],
    [400, JSON.stringify({ error: 'no tool' }), false],
    [400, JSON.stringify({ error: { data: 'session' } }), false],
    [400, '<p>your session has expired', false],
    [400, `session ${' '.repeat(192)}`, true],
    [400, `session ${' '.repeat(193)}`, false],
    [400, JSON.stringify({ error: `session ${' '.repeat(16 * 1024)}` }), false],
    [400, '', false],
    [410, 'no session', false],
    [429, 'no session', false],
    [500, 'no session', false],
  ])('HTTP %i with %.60s: %s', (status, text, isLost) => {
    const [head, body] = [{ status, headers: {} }, Buffer.from(text)]
    expect(failureOfStatus(head, true, NOW, body).kind === 'session_expired').toBe(isLost)
    expect(statusDecides(head, true, body)).toBe(isLost || status === 429)
    // Without a session id there was none to lose.
    expect(failureOfStatus(head, false, NOW, body).kind).not.toBe('session_expired')
    expect(statusDecides(head, false, body)).toBe(status === 429)
  })
})

test.each([
  [200, false],
  [399, false],
  [400, true],
  [401, true],
  [403, false],
  [404, true],
  [429, false],
  [500, true],
  [503, false],
])('an answer without our id at HTTP %i counts as ours: %s', (status, counts) => {
  expect(bodyMayAnswer({ status, headers: {} })).toBe(counts)
})

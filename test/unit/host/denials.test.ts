/** What the audit log is told of refused requests, and what policy rules read of a caller. */
import { expect, test } from 'vitest'
import { factsOf, isSameFacts, withHost } from '../../../src/host/caller-facts.ts'
import { reportDenied, reportDeniedMessage } from '../../../src/host/denials.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

const scope = { server: undefined, toolset: 'ops' }

test.each([
  [404, 'session'],
  [413, 'too_large'],
  [429, 'overloaded'],
  [503, 'overloaded'],
  [400, 'invalid'],
])('a request that is answered with %i is reported as %s', (status, reason) => {
  const told: unknown[] = []
  const denied = (one: object): void => void told.push(one)
  const facts = { path: '/mcp', client: '10.0.0.7' }
  const full = { ...facts, header: (name: string) => (name === 'mcp-session-id' ? 's' : undefined) }
  reportDenied({ denied }, { request: full, principal: 'p', scope }, status, 'why', { method: 'tools/call' })
  const bare = { ...facts, header: () => undefined }
  reportDenied({ denied }, { request: bare, principal: 'p', scope: { server: undefined } }, status, undefined, undefined)
  reportDenied({ denied: undefined }, { request: bare, principal: 'p', scope }, status, 'why', undefined)
  expect(told).toEqual([
    { reason, status, principal: 'p', toolset: 'ops', ...facts, method: 'tools/call', session: 's', detail: 'why' },
    { reason, status, principal: 'p', ...facts },
  ])
})

test('a message that is refused is reported with what is known of it', () => {
  const told: unknown[] = []
  const denied = (one: object): void => void told.push(one)
  reportDeniedMessage({ denied }, new Failure('overloaded', 'full'), { principal: 'p', scope, session: { id: 's' } }, 'ping')
  reportDeniedMessage({ denied }, new Failure('protocol', 'bad'), { principal: 'p', scope: { server: undefined } })
  reportDeniedMessage({ denied }, 'no', { principal: 'p', scope: { server: undefined } })
  reportDeniedMessage({ denied: undefined }, 'no', { principal: 'p', scope })
  expect(told).toEqual([
    { reason: 'overloaded', principal: 'p', toolset: 'ops', method: 'ping', session: 's', detail: 'full' },
    { reason: 'invalid', principal: 'p', detail: 'bad' },
    { reason: 'invalid', principal: 'p', detail: 'no' },
  ])
})

test('the facts of a caller are those of its token, its address, and the name that the host gives itself', () => {
  const [claims, scopes] = [{ dept: 'x' }, ['mcp:a']]
  const facts = factsOf({ principal: 'p', toolsets: undefined, scopes, claims }, '10.0.0.7')
  expect(facts).toEqual({ claims, scopes, address: '10.0.0.7', host: '' })
  expect(factsOf({ principal: 'p', toolsets: undefined, scopes: undefined }, '')).toEqual({
    claims: {},
    scopes: [],
    address: '',
    host: '',
  })
  expect([withHost(facts, { name: 'cursor' }), withHost(facts, { name: 7 }), withHost(facts, undefined)]).toEqual([
    { ...facts, host: 'cursor' },
    facts,
    facts,
  ])
})

test('facts are the same for one token at one address, whatever the host is called', () => {
  const facts = { claims: {}, scopes: [], address: 'a', host: 'one' }
  expect([isSameFacts(facts, { ...facts, host: 'two' }), isSameFacts(undefined, undefined)]).toEqual([true, true])
  for (const other of [{ ...facts, claims: {} }, { ...facts, scopes: [] }, { ...facts, address: 'b' }, undefined])
    expect([isSameFacts(facts, other), isSameFacts(other, facts)]).toEqual([false, false])
})

/** What a `requestState` is good for: one request of one principal at one endpoint, for a time (BRIDGING 3.2; B061–B066). */
import { describe, expect, test } from 'vitest'
import { Seal } from '../../../src/auth/seal.ts'
import { Rounds } from '../../../src/gateway/rounds/rounds.ts'
import type { Call, InputRequired } from '../../../src/rpc/call.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'
import type { CallFacts } from '../../support/calls.ts'

const TTL_MS = 60_000

const scene = () => {
  const time = { nowMs: 0 }
  const rounds = new Rounds(new Seal({ keys: [Buffer.alloc(32, 7)], now: () => time.nowMs }), () => TTL_MS)
  const callWith = (params: object, facts: CallFacts = {}): Call =>
    callOf({ params: Payload.of({ name: 'a__x', arguments: { n: 1 }, ...params }), ...facts })
  /** The state that the host gets after a first call, for what the server sent. */
  const stateOf = (facts: CallFacts = {}, sent: Partial<InputRequired> = {}): string => {
    const outcome: InputRequired = {
      kind: 'input_required',
      result: Payload.of({ inputRequests: {} }),
      state: undefined,
      ...sent,
    }
    rounds.close(outcome, callWith({}, facts), { serverKey: 'a', original: 'x', entry: undefined })
    const { requestState } = JSON.parse(join(outcome.result.parts()).toString()) as { requestState: string }
    return requestState
  }
  return { time, rounds, callWith, stateOf }
}

test('a first call has no round', () => {
  const { rounds, callWith } = scene()
  expect(rounds.open(callWith({}))).toBeUndefined()
})

test('a retry finds its server, and what the server sent', () => {
  const { rounds, callWith, stateOf } = scene()
  const opened = rounds.open(
    callWith({ requestState: stateOf({}, { state: 'of the server', maker: 'visit' }), inputResponses: { q: { a: 1 } } }),
  )
  expect(opened).toMatchObject({ server: 'a', original: 'x', resume: { state: 'of the server', maker: 'visit' } })
  expect(join(opened?.resume.responses?.parts() ?? []).toString()).toBe('{"q":{"a":1}}')
  expect(rounds.open(callWith({ requestState: stateOf() }))?.resume).toEqual({
    state: undefined,
    maker: undefined,
    responses: undefined,
  })
})

describe('a state is refused', () => {
  const REFUSED = { code: -32602, message: 'invalid or expired requestState' }

  test.each<[string, object, CallFacts]>([
    ['to another principal', {}, { caller: { principal: 'bob' } }],
    ['at the endpoint of a server', {}, { caller: { scope: { server: 'a' } } }],
    ['at a toolset', {}, { caller: { scope: { server: undefined, toolset: 'ops' } } }],
    ['for another tool', {}, { target: 'a__y' }],
    ['for another method', {}, { method: 'prompts/get' }],
    ['for other arguments', { arguments: { n: 2 } }, {}],
    ['for no arguments', { arguments: undefined }, {}],
  ])('B062 B064 %s', (_, params, facts) => {
    const { rounds, callWith, stateOf } = scene()
    expect(() => rounds.open(callWith({ requestState: stateOf(), ...params }, facts))).toThrow(expect.objectContaining(REFUSED))
  })

  test('when its time is over, and where it is none of ours', () => {
    const { time, rounds, callWith, stateOf } = scene()
    const requestState = stateOf()
    time.nowMs = TTL_MS - 1
    expect(rounds.open(callWith({ requestState }))).toBeDefined()
    time.nowMs = TTL_MS
    expect(() => rounds.open(callWith({ requestState }))).toThrow(expect.objectContaining(REFUSED))
    expect(() => rounds.open(callWith({ requestState: 'x' }))).toThrow(expect.objectContaining(REFUSED))
    expect(() => rounds.open(callWith({ requestState: 7 }))).toThrow('params.requestState must be a string')
  })
})

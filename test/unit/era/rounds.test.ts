/** Whose `requestState` it is: states of one principal are nothing to another, whatever else fits (B062). */
import { describe, expect, test } from 'vitest'
import { randomBytes } from 'node:crypto'
import { Seal } from '../../../src/auth/seal.ts'
import { Parking } from '../../../src/era/host/parking.ts'
import { DEFAULT_PARKING } from '../../../src/era/host/parking-options.ts'
import { Rounds } from '../../../src/gateway/rounds/rounds.ts'
import type { Call, Outcome, Question } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const seal = new Seal({ keys: [randomBytes(32)] })
const REFUSED = { code: -32602, message: 'invalid or expired requestState' }

const callFrom = (principal: string, params: object): Call =>
  callOf({
    params: Payload.of({ name: 'a__x', arguments: {}, ...params }),
    caller: { principal, capabilities: { elicitation: {} } },
  })
const stateOf = ({ result }: Outcome): string => (result as Payload).text('requestState') ?? ''

describe('B062 a state of one principal', () => {
  test('is refused to another where a server of this era gave it', () => {
    const rounds = new Rounds(seal, () => 60_000)
    const required: Outcome = { kind: 'input_required', result: Payload.of({ requestState: 'own' }), state: 'own' }
    const closed = rounds.close(required, callFrom('ann', {}), 'a', 'x')
    const token = Buffer.concat(closed.result.parts()).toString()
    const { requestState } = JSON.parse(token) as { requestState: string }
    expect(rounds.open(callFrom('ann', { requestState }))).toMatchObject({ server: 'a', resume: { state: 'own' } })
    expect(() => rounds.open(callFrom('bob', { requestState }))).toThrow(expect.objectContaining(REFUSED))
  })

  test('is refused to another where it stands for a parked call, which waits on for its own', async () => {
    const question: Question = { method: 'elicitation/create', params: Payload.of({ message: '?' }) }
    const handle = new Parking(
      seal,
      () => ({ ...DEFAULT_PARKING, coalesceMs: 0 }),
      () => undefined,
    ).layer(async (call) => {
      const answer = await call.ask?.(question)
      return { kind: 'complete', result: Payload.of({ got: answer !== undefined && 'result' in answer }) }
    })
    const round = await handle(callFrom('ann', {}))
    const retry = { requestState: stateOf(round), inputResponses: { 'input-1': { action: 'decline' } } }
    expect(() => handle(callFrom('bob', retry))).toThrow(expect.objectContaining(REFUSED))
    const done = await handle(callFrom('ann', retry))
    expect(Buffer.concat(done.result.parts()).toString()).toBe('{"got":true}')
  })

  test('limits.parked_per_principal (1): the second question of one principal is refused, that of another is not', async () => {
    const handle = new Parking(
      seal,
      () => ({ ...DEFAULT_PARKING, coalesceMs: 0, maxPerPrincipal: 1 }),
      () => undefined,
    ).layer(async (call) => {
      const answer = await call.ask?.({ method: 'elicitation/create', params: Payload.of({ message: '?' }) })
      const text = answer !== undefined && 'error' in answer ? answer.error.text('message') : undefined
      return { kind: 'complete', result: Payload.of({ text }) }
    })
    expect((await handle(callFrom('ann', {}))).kind).toBe('input_required')
    const second = await handle(callFrom('ann', {}))
    expect(Buffer.concat(second.result.parts()).toString()).toMatch(/limits\.parked_per_principal \(1\) reached/)
    expect((await handle(callFrom('bob', {}))).kind).toBe('input_required')
  })
})

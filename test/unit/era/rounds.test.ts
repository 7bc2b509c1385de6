/** Whose `requestState` it is: states of one principal are nothing to another, whatever else fits (B062). */
import { describe, expect, test } from 'vitest'
import { randomBytes } from 'node:crypto'
import { Seal } from '../../../src/auth/seal.ts'
import { Parking } from '../../../src/era/host/parking.ts'
import { DEFAULT_PARKING } from '../../../src/era/host/parking-options.ts'
import { Rounds } from '../../../src/gateway/rounds/rounds.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import type { Call, HostSession, Outcome, Question, Scope } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const seal = new Seal({ keys: [randomBytes(32)] })
const REFUSED = { code: -32602, message: 'invalid or expired requestState' }

const callFrom = (principal: string, params: object, scope: Scope = EVERYTHING): Call =>
  callOf({
    params: Payload.of({ name: 'a__x', arguments: {}, ...params }),
    caller: { principal, capabilities: { elicitation: {} }, scope },
  })
const stateOf = ({ result }: Outcome): string => (result as Payload).text('requestState') ?? ''

describe('B062 a state of one principal', () => {
  test('is refused to another where a server of this era gave it', () => {
    const rounds = new Rounds(seal, () => 60_000)
    const required: Outcome = { kind: 'input_required', result: Payload.of({ requestState: 'own' }), state: 'own' }
    const closed = rounds.close(required, callFrom('ann', {}), { serverKey: 'a', original: 'x', entry: undefined })
    const token = Buffer.concat(closed.result.parts()).toString()
    const { requestState } = JSON.parse(token) as { requestState: string }
    expect(rounds.open(callFrom('ann', { requestState }))).toMatchObject({ server: 'a', resume: { state: 'own' } })
    expect(() => rounds.open(callFrom('bob', { requestState }))).toThrow(expect.objectContaining(REFUSED))
  })

  test('is refused to another, and at another endpoint, where it stands for a parked call, which waits on for its own', async () => {
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
    for (const other of [callFrom('bob', retry), callFrom('ann', retry, { server: 'a' })])
      expect(() => handle(other)).toThrow(expect.objectContaining(REFUSED))
    const done = await handle(callFrom('ann', retry))
    expect(Buffer.concat(done.result.parts()).toString()).toBe('{"got":true}')
  })

  test('B063 is invalid once it has expired, also at a process that does not hold the call', async () => {
    const clock = { nowMs: 0 }
    const own = new Seal({ keys: [randomBytes(32)], now: () => clock.nowMs })
    const rounds = new Rounds(own, () => 60_000)
    const parkingOf = (owner: string): Parking =>
      new Parking(
        own,
        () => ({ ...DEFAULT_PARKING, coalesceMs: 0 }),
        () => undefined,
        owner,
      )
    const server = async (call: Call): Promise<Outcome> => {
      rounds.open(call)
      await call.ask?.({ method: 'elicitation/create', params: Payload.of({ message: '?' }) })
      return { kind: 'complete', result: Payload.of({}) }
    }
    const holder = parkingOf('one')
    const other = parkingOf('two').layer(server)
    const retry = callFrom('ann', { requestState: stateOf(await holder.layer(server)(callFrom('ann', {}))) })
    expect(() => other(retry)).toThrow(expect.objectContaining({ kind: 'lost' }) as Error)
    clock.nowMs = DEFAULT_PARKING.ttlMs
    await expect(other(retry)).rejects.toMatchObject(REFUSED)
    holder.close()
  })

  test('B064 needs canonical arguments only once its server asks: deeper ones fail its question, not the call', async () => {
    const handle = new Parking(
      seal,
      () => ({ ...DEFAULT_PARKING, coalesceMs: 0 }),
      () => undefined,
    ).layer(async ({ ask, target }) => {
      const asked = async (): Promise<unknown> => ask?.({ method: 'elicitation/create', params: Payload.of({ message: '?' }) })
      const isRefused =
        target === 'asks' &&
        (await asked().then(
          () => false,
          () => true,
        ))
      return { kind: 'complete', result: Payload.of({ isRefused }) }
    })
    const deep = Payload.at(Buffer.from(`{"arguments":{"a":${'['.repeat(600)}${']'.repeat(600)}}}`))
    for (const target of ['x', 'asks']) {
      const call = callOf({ target, params: deep.fresh(), caller: { capabilities: { elicitation: {} } } })
      const { result } = await Promise.resolve(call).then(handle)
      expect(Buffer.concat(result.parts()).toString()).toBe(`{"isRefused":${target === 'asks'}}`)
    }
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

describe('calls that are parked', () => {
  const questions: Readonly<Record<string, Question>> = {
    elicitation: { method: 'elicitation/create', params: Payload.of({ message: '?' }) },
    sampling: { method: 'sampling/createMessage', params: Payload.of({ messages: [] }) },
    roots: { method: 'roots/list', params: undefined },
  }
  /** Parking in front of a server that asks once and tells what it got. */
  const parkingOf = (options: Partial<typeof DEFAULT_PARKING> = {}, owner?: string) => {
    const reached: string[] = []
    const parking = new Parking(
      seal,
      () => ({ ...DEFAULT_PARKING, coalesceMs: 0, ...options }),
      (option) => reached.push(option),
      owner,
    )
    const handle = parking.layer(async ({ ask, caller }) => {
      const question = questions[Object.keys(caller.capabilities)[0] ?? '']
      if (ask === undefined || question === undefined) return { kind: 'complete', result: Payload.of({ asked: false }) }
      const answer = await ask(question)
      const got = 'error' in answer ? answer.error.text('message') : (answer.result.text('action') ?? '')
      return { kind: 'complete', result: Payload.of({ got }) }
    })
    const read = async (outcome: Promise<Outcome>): Promise<object> =>
      JSON.parse(Buffer.concat([(await outcome).result.parts()].flat(2)).toString()) as object
    return { parking, handle, reached, read }
  }
  const answering = (round: Outcome): object => ({
    requestState: stateOf(round),
    inputResponses: { 'input-1': { action: 'decline' } },
  })

  test.each<[what: string, call: Call, isAsked: boolean]>([
    ['elicitation', callOf({ caller: { capabilities: { elicitation: {} } } }), true],
    ['sampling', callOf({ caller: { capabilities: { sampling: {} } } }), true],
    ['roots', callOf({ caller: { capabilities: { roots: {} } } }), true],
    ['nothing', callOf(), false],
    ['elicitation, but for a list', callOf({ method: 'tools/list', caller: { capabilities: { elicitation: {} } } }), false],
    [
      'elicitation, in a session',
      callOf({ caller: { capabilities: { elicitation: {} }, session: { id: 's' } as HostSession } }),
      false,
    ],
  ])('are those of modern hosts that declare %s', async (_what, call, isAsked) => {
    const { handle, read, parking } = parkingOf()
    const outcome = handle(call)
    if (isAsked) expect([(await outcome).kind, parking.size]).toEqual(['input_required', 1])
    else expect(await read(outcome)).toEqual({ asked: false })
    parking.close()
  })

  test('have an owner that is read from their state, while they wait and no longer are counted', async () => {
    const { parking, handle, read } = parkingOf({}, 'me')
    const round = await handle(callFrom('ann', {}))
    expect([parking.ownerOf(stateOf(round)), parking.ownerOf('x'), parking.size]).toEqual(['me', undefined, 1])
    expect(await read(handle(callFrom('ann', answering(round))))).toEqual({ got: 'decline' })
    expect(parking.size).toBe(0)
    expect(() => handle(callFrom('ann', answering(round)))).toThrow(
      expect.objectContaining({ code: -32602, message: 'requestState already used' }) as Error,
    )
    const other = parkingOf({}, 'you')
    expect(() => other.handle(callFrom('ann', answering(round)))).toThrow(
      expect.objectContaining({ kind: 'lost', executed: 'unknown' }) as Error,
    )
  })

  test.each<[options: Partial<typeof DEFAULT_PARKING>, principals: readonly string[], limit: string | undefined]>([
    [{ maxParked: 1 }, ['ann', 'bob'], 'limits.parked'],
    [{ maxParked: 2 }, ['ann', 'bob'], undefined],
    [{ maxParked: 2 }, ['ann', 'bob', 'eve'], 'limits.parked'],
    [{ maxPerPrincipal: 1 }, ['ann', 'ann'], 'limits.parked_per_principal'],
    [{ maxPerPrincipal: 1 }, ['ann', 'bob'], undefined],
    [{ maxPerPrincipal: 1 }, ['local', 'local'], undefined],
  ])('are limited by %j: of %j the last is refused for %s', async (options, principals, limit) => {
    const { parking, handle, read, reached } = parkingOf(options)
    const outcomes = []
    for (const principal of principals) outcomes.push(await handle(callFrom(principal, {})))
    const last = outcomes.at(-1)!
    if (limit === undefined) expect([last.kind, reached]).toEqual(['input_required', []])
    else
      expect([await read(Promise.resolve(last)), reached]).toEqual([
        { got: expect.stringContaining(`${limit} (`) as unknown },
        [limit],
      ])
    parking.close()
  })

  test('end with the gateway; those with a request of their host go on without their question, also later ones', async () => {
    const { parking, handle, read } = parkingOf({ coalesceMs: 60_000 })
    const carried = handle(callFrom('ann', {}))
    parking.close()
    expect(await read(carried)).toEqual({ got: 'cancel' })
    expect(await read(handle(callFrom('ann', {})))).toEqual({ got: 'cancel' })
    const waiting = parkingOf()
    const round = await waiting.handle(callFrom('ann', {}))
    waiting.parking.close()
    expect(waiting.parking.size).toBe(0)
    expect(() => waiting.handle(callFrom('ann', answering(round)))).toThrow(expect.objectContaining({ code: -32602 }) as Error)
  })
})

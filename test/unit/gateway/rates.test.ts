/** Token buckets and what they are of: principals, toolsets, servers, tools. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseRate } from '../../../src/config/schema/units.ts'
import { Rates } from '../../../src/gateway/limits/rates.ts'
import type { RateRule } from '../../../src/gateway/limits/rates.ts'
import { complete } from '../../../src/rpc/call.ts'
import type { Call } from '../../../src/rpc/call.ts'
import { TokenBucket } from '../../../src/rpc/rate.ts'
import type { Rate } from '../../../src/rpc/rate.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const rate = (text: string): Rate => {
  const parsed = parseRate(text)
  if (parsed === undefined) throw new Error(`no rate: ${text}`)
  return parsed
}

describe('a rate', () => {
  test.each([
    ['20/s', 20, 1_000],
    ['5/2m', 5, 120_000],
    ['1/500ms', 1, 500],
  ])('%s', (text, amount, periodMs) => {
    expect(parseRate(text)).toEqual({ amount, periodMs, text })
  })

  test.each(['', '20', '20/', '/s', '0/s', '1/0s', '1.5/s', '-1/s', '1/d', '1/s/s', '1/100h00m', '10000000/s', 5])(
    '%s is none',
    (text) => {
      expect(parseRate(text)).toBeUndefined()
    },
  )

  test('whoever comes when, no time has more tokens than a full bucket and what flows in', () => {
    const steps = fc.array(fc.double({ min: 0, max: 500, noNaN: true }), { maxLength: 200 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 2_000 }), steps, (amount, periodMs, waits) => {
        const bucket = new TokenBucket({ amount, periodMs, text: '' })
        const taken: number[] = []
        let nowMs = 1e9
        for (const wait of waits) {
          nowMs += wait
          const waitMs = bucket.waitMs(nowMs)
          if (waitMs > 0) {
            // What it says holds: no sooner, and then it does.
            expect(bucket.waitMs(nowMs + waitMs / 2)).toBeGreaterThan(0)
            expect(bucket.waitMs(nowMs + waitMs + 0.01)).toBe(0)
          } else taken.push((bucket.take(nowMs), nowMs))
        }
        for (const [at, fromMs] of taken.entries())
          for (const [more, toMs] of taken.slice(at).entries())
            expect(more + 1).toBeLessThanOrEqual(amount + ((toMs - fromMs) * amount) / periodMs + 1e-3)
      }),
    )
  })
})

const PRINCIPAL: RateRule = { option: 'limits.rate_per_principal', rate: rate('2/s'), of: { kind: 'principal' } }
const TOOLSET: RateRule = { option: 'toolsets.ops.limits.rate', rate: rate('3/m'), of: { kind: 'toolset', toolset: 'ops' } }
const SERVER: RateRule = { option: 'servers.a.limits.rate', rate: rate('2/s'), of: { kind: 'server', server: 'a' } }
const TOOL: RateRule = { option: 'servers.a.tools.x.rate', rate: rate('1/m'), of: { kind: 'tool', server: 'a', original: 'x' } }

const callFrom = (principal: string, toolset?: string, method = 'tools/call'): Call =>
  callOf({ method, caller: { principal, scope: { server: undefined, ...(toolset !== undefined && { toolset }) } } })

/** Rates on a clock that the test turns, and what became of a call: the option that refused it, or nothing. */
const watched = (...rules: readonly RateRule[]) => {
  const clock = { nowMs: 0 }
  const rates = new Rates(
    rules,
    ({ toolset }) => toolset,
    () => clock.nowMs,
  )
  const handle = rates.layer(() => Promise.resolve(complete(Payload.of({}))))
  const refusedBy = async (work: () => unknown): Promise<unknown> => {
    try {
      await work()
      return undefined
    } catch (error) {
      return error instanceof Failure ? error.facts.limit : error
    }
  }
  return {
    rates,
    clock,
    enter: (...of: Parameters<typeof callFrom>) => refusedBy(() => handle(callFrom(...of))),
    reach: (original: string, server = 'a', method = 'tools/call') =>
      refusedBy(() => rates.checkRoute(callFrom('p', undefined, method), server, original)),
  }
}

describe('rate limits', () => {
  test('each principal has its own, and nobody without a credential has one', async () => {
    const { enter, clock, rates } = watched(PRINCIPAL)
    const bob = [await enter('bob'), await enter('bob'), await enter('bob')]
    expect(bob).toEqual([undefined, undefined, 'limits.rate_per_principal'])
    expect(await enter('eve')).toBeUndefined()
    expect([await enter('local'), await enter('local'), await enter('local')]).toEqual([undefined, undefined, undefined])
    clock.nowMs = 500
    expect([await enter('bob'), await enter('bob')]).toEqual([undefined, 'limits.rate_per_principal'])
    expect(rates.counts).toEqual([{ option: 'limits.rate_per_principal', rate: '2/s', refused: 2 }])
  })

  test('a toolset has one for all who use it; lists and tasks take nothing', async () => {
    const { enter } = watched(TOOLSET)
    for (const method of ['tools/list', 'tasks/get', 'resources/subscribe'])
      for (let times = 0; times < 4; times++) expect(await enter('a', 'ops', method)).toBeUndefined()
    expect([await enter('a', 'ops'), await enter('b', 'ops'), await enter('c', 'ops', 'resources/read')]).toEqual(
      Array.from({ length: 3 }),
    )
    expect(await enter('d', 'ops')).toBe('toolsets.ops.limits.rate')
    expect([await enter('d', 'review'), await enter('d')]).toEqual([undefined, undefined])
  })

  test('a call that one limit refuses takes nothing of the other', async () => {
    const { enter, clock } = watched(PRINCIPAL, TOOLSET)
    for (let times = 0; times < 3; times++) await enter(`p${times}`, 'ops')
    expect([await enter('bob', 'ops'), await enter('bob', 'ops'), await enter('bob', 'ops')]).toEqual(
      Array.from({ length: 3 }, () => 'toolsets.ops.limits.rate'),
    )
    expect([await enter('bob'), await enter('bob'), await enter('bob')]).toEqual([
      undefined,
      undefined,
      'limits.rate_per_principal',
    ])
    clock.nowMs = 20_000
    expect(await enter('bob', 'ops')).toBeUndefined()
  })

  test('a tool has one of its own beside that of its server', async () => {
    const { reach } = watched(SERVER, TOOL)
    expect([await reach('x'), await reach('x'), await reach('y'), await reach('y')]).toEqual([
      undefined,
      'servers.a.tools.x.rate',
      undefined,
      'servers.a.limits.rate',
    ])
    expect([await reach('x', 'b'), await reach('x', 'a', 'prompts/get')]).toEqual([undefined, 'servers.a.limits.rate'])
  })

  test('a call that a limit of its server or tool refuses takes nothing of its principal and its toolset', async () => {
    const { rates, enter } = watched(PRINCIPAL, TOOLSET, TOOL)
    const call = callFrom('bob', 'ops')
    const handle = rates.layer(async () => {
      rates.checkRoute(call, 'a', 'x')
      return complete(Payload.of({}))
    })
    await handle(call)
    for (let times = 0; times < 4; times++)
      await expect(handle(call)).rejects.toMatchObject({ facts: { limit: 'servers.a.tools.x.rate' } })
    expect([await enter('bob', 'ops'), await enter('bob', 'ops')]).toEqual([undefined, 'limits.rate_per_principal'])
  })

  test('the error says which option, for how long, and that nothing was done', async () => {
    const { rates } = watched(TOOL)
    rates.checkRoute(callFrom('p'), 'a', 'x')
    expect(() => rates.checkRoute(callFrom('p'), 'a', 'x')).toThrow(
      expect.objectContaining({
        kind: 'rate_limited',
        executed: 'no',
        retryable: true,
        message: 'servers.a.tools.x.rate (1/m) is reached',
        facts: expect.objectContaining({ retryAfterMs: 60_000 }) as unknown,
      }) as Error,
    )
  })

  test('a reload keeps what was taken from a limit that stays', async () => {
    const { reach, rates } = watched(TOOL)
    await reach('x')
    rates.apply([TOOL, SERVER])
    expect(await reach('x')).toBe('servers.a.tools.x.rate')
    rates.apply([{ ...TOOL, rate: rate('5/m') }])
    expect(await reach('x')).toBeUndefined()
    expect(rates.counts).toEqual([{ option: 'servers.a.tools.x.rate', rate: '5/m', refused: 1 }])
    rates.apply([])
    expect([rates.limitsCallers, rates.limitsRoutes]).toEqual([false, false])
  })
})

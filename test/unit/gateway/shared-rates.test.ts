import { expect, test } from 'vitest'
import { Rates } from '../../../src/gateway/limits/rates.ts'
import type { RateRule } from '../../../src/gateway/limits/rates.ts'
import { SharedRates } from '../../../src/gateway/limits/shared-rates.ts'
import type { Call } from '../../../src/rpc/call.ts'
import { complete } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'

const RULE: RateRule = {
  option: 'limits.rate_per_principal',
  rate: { amount: 10, periodMs: 10_000, text: '10/10s' },
  of: { kind: 'principal' },
}

const scene = (count: number) => {
  let nowMs = 0
  const store = new MemoryStore()
  const replicas = Array.from({ length: count }, () => {
    const rates = new Rates(
      [RULE],
      () => undefined,
      () => nowMs,
    )
    return { rates, shared: new SharedRates(store, rates) }
  })
  const sync = async (): Promise<void> => {
    for (const { shared } of replicas) await shared.sync()
  }
  const isLet = async (at: number, principal: string): Promise<boolean> => {
    const layer = replicas[at]?.rates.layer(async () => complete(Payload.of({})))
    const call = { method: 'tools/call', caller: { principal, scope: { server: undefined } } } as unknown as Call
    return (await layer?.(call).catch(() => undefined)) !== undefined
  }
  return { sync, isLet, pass: (ms: number) => (nowMs += ms), close: () => replicas.forEach(({ shared }) => shared.close()) }
}

test('replicas count for each other: over time no more is let through than at one', async () => {
  const { sync, isLet, pass, close } = scene(3)
  let through = 0
  for (let round = 0; round < 100; round++) {
    for (let at = 0; at < 3; at++) if (await isLet(at, 'p')) through++
    await sync()
    pass(500)
  }
  // 50 s at one in a second, the first ten at once, and what three replicas let through before they knew.
  expect(through).toBeGreaterThanOrEqual(50)
  expect(through).toBeLessThanOrEqual(50 + 10 + 6)
  close()
})

test('a principal that is new at a replica has no full bucket there, and another one does', async () => {
  const { sync, isLet, close } = scene(2)
  for (let at = 0; at < 10; at++) expect(await isLet(0, 'p')).toBe(true)
  await sync()
  expect(await isLet(1, 'p')).toBe(true)
  await sync()
  expect(await isLet(1, 'p')).toBe(false)
  for (let at = 0; at < 10; at++) expect(await isLet(1, 'q')).toBe(true)
  close()
})

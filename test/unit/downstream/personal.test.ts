import { BehaviorSubject } from 'rxjs'
import { expect, test } from 'vitest'
import type { Inventory } from '../../../src/catalog/inventory.ts'
import { DEFAULT_SERVER } from '../../../src/downstream/options.ts'
import type { ServerOptions } from '../../../src/downstream/options.ts'
import { Personal } from '../../../src/downstream/personal.ts'

const scene = () => {
  const clock = { nowMs: 0 }
  const state = { isUsed: false, usedMs: -Infinity, isStopped: false }
  const personal = new Personal({
    // Cast: nothing else is read.
    options: () => ({ ...DEFAULT_SERVER, idleStopMs: 100 }) as ServerOptions,
    make: () => ({
      inventory$: new BehaviorSubject<Inventory | undefined>(undefined),
      outages: 0,
      crashes: 0,
      isWatched: false,
      get isUsed() {
        return state.isUsed
      },
      get usedMs() {
        return state.usedMs
      },
      start: () => undefined,
      stop: async () => void (state.isStopped = true),
      adopt: () => undefined,
    }),
    listed: () => undefined,
    nowMs: () => clock.nowMs,
  })
  personal.of('ann')
  const at = (nowMs: number): boolean => {
    clock.nowMs = nowMs
    personal.sweep(nowMs)
    return state.isStopped
  }
  return { state, at }
}

test('lifecycle.idle_stop the connection of one principal is closed after that time, counted from the end of its use', () => {
  const { state, at } = scene()
  expect(at(99)).toBe(false)
  state.isUsed = true
  expect(at(500)).toBe(false)
  state.isUsed = false
  expect([at(599), at(600)]).toEqual([false, true])
})

test('lifecycle.idle_stop the connection of one principal stays open for a task that the server keeps', () => {
  const { state, at } = scene()
  state.usedMs = 1_000
  expect([at(1_099), at(1_100)]).toEqual([false, true])
})

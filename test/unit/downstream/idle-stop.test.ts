/** When a lazy server that nothing uses is stopped (DECISIONS 2). */
import { expect, test, vi } from 'vitest'
import { IdleStop } from '../../../src/downstream/health/idle-stop.ts'
import type { ServerOptions } from '../../../src/downstream/options.ts'

const setUp = (start: ServerOptions['start'] = 'lazy', idleStopMs = 1_000) => {
  const stop = vi.fn()
  const at = { isUsed: false, usedMs: -Infinity }
  const source = { options: () => ({ start, idleStopMs }), isUsed: () => at.isUsed, usedMs: () => at.usedMs, stop }
  const idle = new IdleStop(source, 0)
  return { idle, at, stop }
}

test('once it was unused for idle_stop, counted from the last sweep that found it used and from the end of the last call', () => {
  const { idle, at, stop } = setUp()
  at.isUsed = true
  idle.sweep(5_000)
  at.isUsed = false
  idle.sweep(5_999)
  at.usedMs = 5_500
  idle.sweep(6_499)
  expect(stop).not.toHaveBeenCalled()
  idle.sweep(6_500)
  expect(stop).toHaveBeenCalledTimes(1)
})

test.each([
  ['that is started at once', setUp('eager')],
  ['without an idle time', setUp('lazy', Infinity)],
])('never a server %s', (_, { idle, at, stop }) => {
  at.usedMs = 0
  idle.sweep(10 ** 9)
  expect(stop).not.toHaveBeenCalled()
})

import { expect, test, vi } from 'vitest'
import { Cancellation, pauseFor } from '../../../src/rpc/cancellation.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

test('listeners are called once, in order, without those that were removed before', () => {
  const cancellation = new Cancellation()
  const called: string[] = []
  const [first, second, third, fourth] = ['first', 'second', 'third', 'fourth'].map((name) => () => void called.push(name))
  for (const listener of [first!, second!, third!, { handleEvent: fourth! }]) cancellation.addEventListener('abort', listener)
  for (const listener of [first!, third!]) cancellation.removeEventListener('abort', listener)
  cancellation.abort()
  cancellation.abort()
  expect(called).toEqual(['second', 'fourth'])
})

test('a listener that removes itself and others while it is called keeps none of them from being called', () => {
  const cancellation = new Cancellation()
  const called: string[] = []
  const listeners = ['first', 'second', 'third'].map((name) => () => {
    called.push(name)
    for (const listener of listeners) cancellation.removeEventListener('abort', listener)
  })
  for (const listener of listeners) cancellation.addEventListener('abort', listener)
  cancellation.abort()
  expect(called).toEqual(['first', 'second', 'third'])
})

test('it is aborted for its listeners, with the notice of the first abort', () => {
  const cancellation = new Cancellation()
  const [notice, later] = [Payload.of({ requestId: 1 }), Payload.of({ requestId: 2 })]
  const seen: unknown[] = []
  cancellation.addEventListener('abort', () => seen.push(cancellation.aborted, cancellation.notice))
  expect([cancellation.aborted, cancellation.notice]).toEqual([false, undefined])
  cancellation.abort(notice)
  cancellation.abort(later)
  expect(seen).toEqual([true, notice])
  expect(cancellation.signal.notice).toBe(notice)
})

test('a pause ends after its time, or fails once the host cancels', async () => {
  vi.useFakeTimers()
  const cancellation = new Cancellation()
  const over = vi.fn()
  const whole = pauseFor(100, cancellation).then(over)
  await vi.advanceTimersByTimeAsync(99)
  expect(over).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  await whole
  const cut = expect(pauseFor(100, cancellation)).rejects.toMatchObject({ kind: 'cancelled', message: 'cancelled by the host' })
  cancellation.abort()
  await cut
})

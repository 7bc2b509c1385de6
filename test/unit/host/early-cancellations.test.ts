/** Which cancellations are kept for requests that have not arrived (BRIDGING 3.10). */
import { beforeEach, expect, test, vi } from 'vitest'
import { EarlyCancellations } from '../../../src/host/session/early-cancellations.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }))

const notice = (requestId: unknown, reason = 'r'): Payload => Payload.of({ requestId, reason })

test('B138 is given to its request, once, as it was sent', () => {
  const early = new EarlyCancellations()
  early.begun('1')
  const sent = notice(3)
  early.keep('3', sent)
  expect([early.begun('2'), early.begun('3'), early.begun('3')]).toEqual([undefined, sent, undefined])
})

test.each([
  ['a number that a request had', '5'],
  ['a number below that of a request', '4'],
  ['a text, of which nobody knows whether it was used', '"6"'],
])('B138 is not kept for %s', (_, id) => {
  const early = new EarlyCancellations()
  early.begun('5')
  early.keep(id, notice(6))
  expect(early.begun(id)).toBeUndefined()
})

test('B138 is kept for five seconds', () => {
  const early = new EarlyCancellations()
  early.keep('0', notice(0))
  early.keep('1', notice(1))
  vi.advanceTimersByTime(5_000)
  expect(early.begun('0')).toBeDefined()
  vi.advanceTimersByTime(1)
  expect(early.begun('1')).toBeUndefined()
})

test('B138 the newest 32 of a session are kept, and none that is long', () => {
  const early = new EarlyCancellations()
  early.keep('50', notice(50, 'x'.repeat(1_024)))
  for (let id = 1; id <= 33; id++) early.keep(`${id}`, notice(id))
  expect(early.begun('1')).toBeUndefined()
  for (let id = 2; id <= 33; id++) expect(early.begun(`${id}`)).toBeDefined()
  expect(early.begun('50')).toBeUndefined()
})

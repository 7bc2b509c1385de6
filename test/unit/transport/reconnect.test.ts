import { expect, test } from 'vitest'
import { asEventId, DEFAULT_RECONNECT, waitBefore } from '../../../src/transport/channel/reconnect.ts'

const latest = { ...DEFAULT_RECONNECT, random: () => 1 }
const earliest = { ...DEFAULT_RECONNECT, random: () => 0 }

test('without a word of the server waits double from 1 s to 30 s, with jitter downwards', () => {
  expect([0, 1, 2, 3, 4, 5, 6, 100].map((tries) => waitBefore(tries, undefined, latest) / 1000)).toEqual([
    1, 2, 4, 8, 16, 30, 30, 30,
  ])
  expect([0, 1, 5].map((tries) => waitBefore(tries, undefined, earliest) / 1000)).toEqual([0.5, 1, 15])
})

test('B223 what the server asked for is waited exactly, and never undercut by later tries', () => {
  expect(waitBefore(0, 250, latest)).toBe(250)
  expect(waitBefore(1, 250, latest)).toBe(2_000)
  expect(waitBefore(3, 60_000, latest)).toBe(60_000)
})

test('a wait of nothing, or of for ever, is brought within reason', () => {
  expect(waitBefore(0, 0, latest)).toBe(10)
  expect(waitBefore(0, Infinity, latest)).toBe(3_600_000)
})

test('an event id goes back as its UTF-8 bytes, unless no header can carry it', () => {
  expect(asEventId('7')).toBe('7')
  expect(asEventId('é')).toBe('Ã©')
  expect([asEventId(undefined), asEventId(''), asEventId('a\tb'), asEventId('\u007f')]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

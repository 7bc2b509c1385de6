/** The last output of a process, and what of it is passed on (F-11). */
import { beforeEach, expect, test, vi } from 'vitest'
import { collector } from '../../support/garbage-collector.ts'
import { OutputTail } from '../../../src/transport/process/output-tail.ts'

beforeEach(() => void vi.useFakeTimers())

const lines = (from: number, to: number): Buffer =>
  Buffer.from(Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}\n`).join(''))

test('F-11 of lines over the rate the last is passed on within a second, with the number of those before it', () => {
  const passed: [string, number][] = []
  const tail = new OutputTail({ maxLinesPerSecond: 3, onLine: (line, skipped) => passed.push([line, skipped]) })
  const stderr = tail.pipe()
  stderr.push(lines(1, 10))
  expect(passed.map(([line]) => line)).toEqual(['line 1', 'line 2', 'line 3'])
  vi.advanceTimersByTime(1_000)
  expect(passed.slice(3)).toEqual([['line 10', 6]])
  vi.advanceTimersByTime(10_000)
  stderr.push(lines(11, 12))
  vi.advanceTimersByTime(10_000)
  expect(passed.slice(4)).toEqual([
    ['line 11', 0],
    ['line 12', 0],
  ])
  expect(vi.getTimerCount()).toBe(0)
})

test('F-11 a line that follows in the next second tells how many were skipped, once', () => {
  const passed: [string, number][] = []
  const tail = new OutputTail({ maxLinesPerSecond: 1, onLine: (line, skipped) => passed.push([line, skipped]) })
  const stderr = tail.pipe()
  stderr.push(lines(1, 3))
  vi.advanceTimersByTime(1_000)
  stderr.push(lines(4, 5))
  vi.advanceTimersByTime(1_000)
  expect(passed).toEqual([
    ['line 1', 0],
    ['line 3', 1],
    ['line 5', 1],
  ])
})

test('the lines of two pipes are not mixed, wherever their chunks end', () => {
  const tail = new OutputTail()
  const [stdout, stderr] = [tail.pipe(), tail.pipe()]
  stdout.push(Buffer.from('INFO: "GET /mcp'))
  stderr.push(Buffer.from('Error: port in use\n'))
  stdout.push(Buffer.from('" 200\nlast'))
  stdout.end()
  expect(tail.last(3)).toEqual(['Error: port in use', 'INFO: "GET /mcp" 200', 'last'])
})

test('F-11 no more than the rate is passed on where a line of the next second comes before the timer', () => {
  let nowMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  let passed = 0
  const tail = new OutputTail({ maxLinesPerSecond: 100, onLine: () => passed++ })
  const stderr = tail.pipe()
  stderr.push(lines(1, 1_000))
  vi.advanceTimersByTime(999)
  nowMs = 1_001
  stderr.push(lines(1, 1_000))
  vi.advanceTimersByTime(1)
  nowMs = 1_002
  stderr.push(lines(1, 1_000))
  expect(passed).toBe(200)
})

test('F-11 100 lines a second are passed on, of each 8 KiB, and 64 KiB are kept', () => {
  const passed: string[] = []
  const tail = new OutputTail({ onLine: (line) => passed.push(line) })
  const stderr = tail.pipe()
  stderr.push(Buffer.from(`${'x'.repeat(9_000)}\n`))
  stderr.push(lines(1, 99))
  expect(passed.map(({ length }) => length).slice(0, 2)).toEqual([8 * 1024, 6])
  expect(passed).toHaveLength(100)
  stderr.push(lines(100, 100))
  expect(passed).toHaveLength(100)
  stderr.push(Buffer.from(`${'y'.repeat(1_000)}\n`.repeat(100)))
  const keptBytes = tail.last(1_000).join('').length
  expect(keptBytes).toBeLessThan(64 * 1024)
  expect(keptBytes).toBeGreaterThan(58 * 1024)
})

test('F-11 a line that is kept does not keep what was read with it', async () => {
  vi.useRealTimers()
  const collect = collector()
  const tail = new OutputTail()
  const stderr = tail.pipe()
  const read = Array.from({ length: 20 }, (_, at) => {
    const memory = Buffer.from(`${'\n'.repeat(64 * 1024)}line ${at}\n`)
    stderr.push(memory)
    return new WeakRef(memory.buffer)
  })
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  expect(read.filter((memory) => memory.deref() !== undefined)).toEqual([])
  expect(tail.last(2)).toEqual(['line 18', 'line 19'])
})

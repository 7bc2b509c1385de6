/** A log that nobody reads costs lines and never memory. */
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createLog } from '../../src/log.ts'

test('F-26 lines for a reader that has stopped are dropped beyond 1 MiB, and counted once it reads again', async () => {
  const stream = new PassThrough()
  const log = createLog({ level: 'info', format: 'json' }, stream)
  const lines = 20_000
  for (let at = 0; at < lines; at++) log.info({ at }, 'x'.repeat(200))
  expect(stream.writableLength).toBeLessThan(1.1 * 1024 * 1024)
  const read: { msg: string; dropped?: number }[] = []
  let rest = ''
  stream.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) read.push(JSON.parse(part) as (typeof read)[number])
  })
  while (stream.writableLength > 0) await new Promise(setImmediate)
  log.info({}, 'after')
  while (read.at(-1)?.msg !== 'after') await new Promise(setImmediate)
  const told = read.at(-2)
  expect(told?.msg).toBe('the log was not read: lines were dropped')
  expect(read.length - 2 + (told?.dropped ?? 0)).toBe(lines)
})

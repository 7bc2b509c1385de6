import { expect, test } from 'vitest'
import { ServerLogs } from '../../../src/downstream/server-logs.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const ALL = { servers: [], after: 0, sinceMs: 0, count: 100 }

test('what is kept of one server stays within its limit and takes nothing from others', () => {
  const logs = new ServerLogs(() => 1)
  logs.printed('b', 1_000, 'mine', 0)
  for (let at = 0; at < 1_000; at++) logs.printed('a', 1_000, `line ${at}`, 0)
  const kept = logs.read(ALL)
  expect(kept.length).toBeLessThan(10)
  expect(kept[0]).toMatchObject({ server: 'b', number: 1 })
  expect(kept.at(-1)).toMatchObject({ server: 'a', text: 'line 999', number: 1_001 })
})

test('a line that is larger than the limit is not kept', () => {
  const logs = new ServerLogs()
  logs.printed('a', 100, 'x'.repeat(200), 0)
  expect(logs.read(ALL)).toEqual([])
})

test('the data of a message is its text, or JSON as the server wrote it, cut at 8 KiB', () => {
  const logs = new ServerLogs()
  const params = (json: string): Payload => Payload.at(Buffer.from(json))
  logs.logged('a', 65_536, params('{"level":"info","data":"plain \\u00e9"}'))
  logs.logged('a', 65_536, params('{"level":"info","logger":"db","data":{"n":1.0,"big":12345678901234567890}}'))
  logs.logged('a', 65_536, params(`{"level":"info","data":"${'y'.repeat(20_000)}"}`))
  logs.logged('a', 65_536, params('{"level":7}'))
  expect(logs.read(ALL).map(({ text }) => text.slice(0, 60))).toEqual([
    'plain é',
    '{"n":1.0,"big":12345678901234567890}',
    'y'.repeat(60),
    '',
  ])
  expect(logs.read(ALL)[2]?.text).toHaveLength(8_192)
})

test('the level and the logger of a message are cut, and count as kept', () => {
  const logs = new ServerLogs()
  const long = 'l'.repeat(10_000)
  for (let at = 0; at < 100; at++) logs.logged('a', 10_000, Payload.of({ level: long, logger: long, data: 'x' }))
  const kept = logs.read(ALL)
  expect(kept.at(-1)).toMatchObject({ level: 'l'.repeat(200), logger: 'l'.repeat(200), text: 'x' })
  expect(kept.length).toBeLessThan(20)
})

test('lines are read after a number, since a time, and no more than asked for', () => {
  let nowMs = 0
  const logs = new ServerLogs(() => (nowMs += 10))
  for (const text of ['a', 'b', 'c']) logs.printed('s', 10_000, text, 0)
  const texts = (query: object): string[] => logs.read({ ...ALL, ...query }).map(({ text }) => text)
  expect(texts({ after: 1 })).toEqual(['b', 'c'])
  expect(texts({ sinceMs: 30 })).toEqual(['c'])
  expect(texts({ count: 2 })).toEqual(['b', 'c'])
  logs.retain(new Set(['other']))
  expect(texts({})).toEqual([])
})

test('a reader waits for a line or for its signal', async () => {
  const logs = new ServerLogs()
  const abort = new AbortController()
  const over: string[] = []
  const wait = (name: string): Promise<void> => logs.added(abort.signal).then(() => void over.push(name))
  const first = wait('first')
  await new Promise(setImmediate)
  expect(over).toEqual([])
  logs.printed('a', 10_000, 'x', 0)
  await first
  const second = wait('second')
  await new Promise(setImmediate)
  expect(over).toEqual(['first'])
  abort.abort()
  await second
  await wait('third')
  expect(over).toEqual(['first', 'second', 'third'])
})

test('a line has what was said beside its text, and what another process received is numbered here', () => {
  const logs = new ServerLogs(() => 7)
  logs.printed('a', 10_000, 'plain', 0)
  logs.printed('a', 10_000, 'after a gap', 3)
  logs.logged('b', 10_000, Payload.at(Buffer.from('{"level":"info","logger":"db","data":"x"}')))
  logs.relayed({ number: 90, atMs: 1, server: 'c', from: 'stderr', text: 'relayed' }, 10_000)
  expect(logs.read(ALL)).toEqual([
    { number: 1, atMs: 7, server: 'a', from: 'stderr', text: 'plain' },
    { number: 2, atMs: 7, server: 'a', from: 'stderr', text: 'after a gap', skipped: 3 },
    { number: 3, atMs: 7, server: 'b', from: 'message', text: 'x', level: 'info', logger: 'db' },
    { number: 4, atMs: 7, server: 'c', from: 'stderr', text: 'relayed' },
  ])
  expect(logs.latest).toBe(4)
  expect(logs.read({ ...ALL, servers: ['c', 'a'], count: 2 }).map(({ number }) => number)).toEqual([2, 4])
  expect(logs.read({ ...ALL, count: 0 })).toEqual([])
  logs.retain(new Set(['b']))
  expect(logs.read(ALL).map(({ server }) => server)).toEqual(['b'])
})

test('a server keeps as many lines as fit: its text and 128 bytes for each', () => {
  const logs = new ServerLogs(() => 1)
  for (const text of ['one', 'two', 'six']) logs.printed('a', 2 * 131, text, 0)
  expect(logs.read(ALL).map(({ text }) => text)).toEqual(['two', 'six'])
  logs.printed('a', 131 + 128, '', 0)
  expect(logs.read(ALL).map(({ text }) => text)).toEqual(['six', ''])
})

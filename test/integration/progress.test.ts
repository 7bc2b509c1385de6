/** Progress and log messages, each to its own caller (BRIDGING 3.9, 3.11). */
import { describe, expect, test } from 'vitest'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import {
  everyLegacyTransport,
  everyModernTransport,
  everyTransport,
  legacyHttp,
  legacyPipe,
  modernHttp,
} from '../support/fake-host.ts'
import type { Host, Pending } from '../support/fake-host.ts'
import { KEY, metaOf } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

/** What came for a call before its answer, wherever its transport puts it. */
const saidDuring = (host: Host, pending: Pending): Message[] => [...pending.messages.entries, ...host.heard.entries]
const ofMethod = (messages: Message[], method: string): JsonMap[] =>
  messages.filter((message) => message.method === method).map(({ params }) => params ?? {})

describe.each(everyTransport)('over $name', ({ connect }) => {
  test.each(everyFakeKind)(
    'B136 progress of a %s server comes under the token of the host, before the answer, rising only',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
      gateway.fake('a').on('tools/call', (turn) => {
        for (const progress of [1, 2, 2, 1, 3]) turn.progress(progress, { total: 3, message: `at ${progress}`, vendor: 1 })
        return { content: [] }
      })
      await using host = await connect(gateway)
      for (const token of ['tok', 7]) {
        host.heard.clear()
        const pending = host.begin('tools/call', { name: 'a__x', _meta: { progressToken: token } })
        await pending.response
        const progress = ofMethod(saidDuring(host, pending), 'notifications/progress')
        expect(progress.map((params) => params['progress'])).toEqual([1, 2, 3])
        expect(progress[0]).toEqual({ progressToken: token, progress: 1, total: 3, message: 'at 1', vendor: 1 })
        expect(new Set(progress.map((params) => params['progressToken']))).toEqual(new Set([token]))
      }
    },
  )
  test('B136 without a token nothing is relayed, and after the answer nothing either', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'] }) } })
    gateway.fake('a').on('tools/call', (turn) => {
      turn.connection.notify('notifications/progress', { progressToken: turn.id, progress: 1 })
      turn.answer({ content: [] })
      turn.connection.notify('notifications/progress', { progressToken: turn.id, progress: 2 })
      turn.connection.notify('notifications/progress', { progressToken: 'foreign', progress: 2 })
    })
    await using host = await connect(gateway)
    const without = host.begin('tools/call', { name: 'a__x' })
    await without.response
    expect(saidDuring(host, without)).toEqual([])
    const after = host.begin('tools/call', { name: 'a__x', _meta: { progressToken: 'p' } })
    await after.response
    await host.call('tools/call', { name: 'a__x' })
    expect(ofMethod(saidDuring(host, after), 'notifications/progress').map(({ progress }) => progress)).toEqual([1])
  })
  test('3.9 a flood of progress is thinned out, the latest always comes before the answer', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['x'] }) } })
    gateway.fake('a').on('tools/call', (turn) => {
      for (let progress = 1; progress <= 5_000; progress++) turn.progress(progress)
      return { content: [] }
    })
    await using host = await connect(gateway)
    const pending = host.begin('tools/call', { name: 'a__x', _meta: { progressToken: 'p' } })
    await pending.response
    const progress = ofMethod(saidDuring(host, pending), 'notifications/progress').map((params) => Number(params['progress']))
    expect(progress.at(-1)).toBe(5_000)
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    expect(progress.length).toBeLessThan(500)
  })
})

test('B137 two calls of two hosts under one token: each hears of its own', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) } })
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  const a = gateway.fake('a').on('tools/call', async (turn) => {
    turn.progress(Number((turn.params['arguments'] as JsonMap)['n']))
    await later
    return { content: [] }
  })
  await using one = await modernHttp.connect(gateway)
  await using two = await modernHttp.connect(gateway)
  const first = one.begin('tools/call', { name: 'a__x', arguments: { n: 1 }, _meta: { progressToken: 't' } }, { id: 1 })
  const second = two.begin('tools/call', { name: 'a__x', arguments: { n: 2 }, _meta: { progressToken: 't' } }, { id: 1 })
  await first.messages.until(() => true)
  await second.messages.until(() => true)
  release()
  await Promise.all([first.response, second.response])
  expect(first.messages.entries.map(({ params }) => params?.['progress'])).toEqual([1])
  expect(second.messages.entries.map(({ params }) => params?.['progress'])).toEqual([2])
  expect(a.all('tools/call')).toHaveLength(2)
})

test('B137 B146 what a modern server on a pipe logs while it serves two hosts reaches neither: it may belong to either', async () => {
  const both = Promise.withResolvers<void>()
  const said = Promise.withResolvers<void>()
  let calls = 0
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['x'] }) } })
  gateway.fake('a').on('tools/call', async (turn) => {
    if (++calls === 2) both.resolve()
    await both.promise
    turn.notify('notifications/message', { level: 'error', data: 'whose?' })
    if (++calls === 4) said.resolve()
    await said.promise
    return { content: [] }
  })
  await using one = await modernHttp.connect(gateway)
  await using two = await modernHttp.connect(gateway)
  const pending = [one, two].map((host) => host.begin('tools/call', { name: 'a__x' }, { meta: { [KEY.logLevel]: 'debug' } }))
  for (const { response } of pending) expect(await response).toMatchObject({ result: { content: [] } })
  expect(pending.map(({ messages }) => messages.entries)).toEqual([[], []])
})

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']
const logging = (turnKind: FakeKind) =>
  fake.of({
    kind: turnKind,
    tools: ['x'],
    on: {
      'tools/call': (turn) => {
        for (const level of LEVELS) turn.notify('notifications/message', { level, logger: 'db', data: { n: 1 } })
        turn.notify('notifications/message', { level: 'emergency', data: 'bare' })
        return { content: [] }
      },
    },
  })

describe.each(everyModernTransport)('log messages over $name', ({ connect }) => {
  test.each(['modern http', 'modern stdio', 'legacy http'] as const)(
    'B146 B147 of a %s server: none without a level, else those that reach it, under the name of the server',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: logging(kind) } })
      await using host = await connect(gateway)
      const silent = host.begin('tools/call', { name: 'a__x' })
      await silent.response
      expect(saidDuring(host, silent)).toEqual([])
      const pending = host.begin('tools/call', { name: 'a__x' }, { meta: { [KEY.logLevel]: 'error' } })
      await pending.response
      const said = ofMethod(saidDuring(host, pending), 'notifications/message')
      expect(said.map(({ level }) => level)).toEqual(['error', 'critical', 'alert', 'emergency', 'emergency'])
      expect(said[0]).toEqual({ level: 'error', logger: 'a/db', data: { n: 1 } })
      expect(said.at(-1)).toEqual({ level: 'emergency', logger: 'a', data: 'bare' })
      if (kind.startsWith('modern'))
        expect(
          gateway
            .fake('a')
            .all('tools/call')
            .map(({ message }) => metaOf(message)[KEY.logLevel]),
        ).toEqual([undefined, 'error'])
    },
  )
  test('B148 an unknown level is answered -32602', async () => {
    await using gateway = await startGateway({ servers: { a: logging('modern http') } })
    await using host = await connect(gateway)
    for (const level of ['loud', 5, {}])
      await expect(host.call('tools/call', { name: 'a__x' }, { meta: { [KEY.logLevel]: level } })).rejects.toMatchObject({
        code: -32602,
      })
    expect(gateway.fake('a').all('tools/call')).toEqual([])
  })
})

describe.each(everyLegacyTransport)('log messages over $name', ({ connect }) => {
  test('3.11 B147 of a modern server: from info on before setLevel, then those that reach it', async () => {
    await using gateway = await startGateway({ servers: { a: logging('modern http') } })
    await using host = await connect(gateway)
    const before = host.begin('tools/call', { name: 'a__x' })
    await before.response
    expect(ofMethod(saidDuring(host, before), 'notifications/message').map(({ level }) => level)).toContain('info')
    expect(await host.call('logging/setLevel', { level: 'alert' })).toEqual({})
    const pending = host.begin('tools/call', { name: 'a__x' })
    await pending.response
    const levels = ofMethod(saidDuring(host, pending), 'notifications/message').map(({ level }) => level)
    // What a pipe carries cannot be told apart by call.
    expect(levels.slice(-3)).toEqual(['alert', 'emergency', 'emergency'])
    expect(levels.filter((level) => level === 'error').length).toBeLessThan(2)
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ message }) => metaOf(message)[KEY.logLevel]),
    ).toEqual(['info', 'alert'])
  })
  test.each(['legacy http', 'legacy stdio', 'legacy sse'] as const)(
    '3.11 of a %s server: the level is set on the link of the session',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: logging(kind) } })
      await using host = await connect(gateway)
      await host.call('logging/setLevel', { level: 'critical' })
      const pending = host.begin('tools/call', { name: 'a__x' })
      await pending.response
      await host.call('ping')
      const levels = gateway.fake('a').all('logging/setLevel')
      expect(levels.map(({ params }) => params['level'])).toEqual(['critical'])
      expect(levels[0]!.connection).toBe(gateway.fake('a').all('tools/call')[0]!.connection)
      expect(ofMethod(saidDuring(host, pending), 'notifications/message').map(({ level }) => level)).toEqual([
        'critical',
        'alert',
        'emergency',
        'emergency',
      ])
    },
  )
  test.each(['legacy http', 'legacy stdio', 'legacy sse'] as const)(
    '3.11 a %s server whose link is open hears of it now',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: logging(kind) } })
      await using host = await connect(gateway)
      await host.call('tools/call', { name: 'a__x' })
      await host.call('logging/setLevel', { level: 'error' })
      const heard = await gateway.fake('a').until('logging/setLevel')
      expect(heard.params).toEqual({ level: 'error' })
      expect(heard.connection).toBe(gateway.fake('a').all('tools/call')[0]!.connection)
    },
  )
  test('B148 an unknown level is answered -32602', async () => {
    await using gateway = await startGateway({ servers: { a: logging('modern http') } })
    await using host = await connect(gateway)
    for (const level of ['loud', 5, undefined])
      await expect(host.call('logging/setLevel', { level })).rejects.toMatchObject({ code: -32602 })
  })
})

test('B052 messages that belong to no call reach the session of their link and nobody else', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'] }) } })
  await using one = await legacyHttp.connect(gateway)
  await using two = await legacyPipe.connect(gateway)
  await one.call('tools/call', { name: 'a__x' })
  await two.call('tools/call', { name: 'a__x' })
  const [mine] = gateway.fake('a').all('tools/call')
  mine!.connection.notify('notifications/message', { level: 'error', data: 'mine' })
  await one.heard.until(({ method }) => method === 'notifications/message')
  gateway.fake('a').connections[0]!.notify('notifications/message', { level: 'error', data: 'of the catalogue link' })
  await two.call('tools/call', { name: 'a__x' })
  expect(two.heard.entries).toEqual([])
})

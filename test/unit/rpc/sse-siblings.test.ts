import { expect, onTestFinished, test } from 'vitest'
import { Connection } from '../../../src/rpc/connection.ts'
import { SseSiblings } from '../../../src/rpc/sse-siblings.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import type { Failure } from '../../../src/wire/message/failure.ts'

/** Connections to one server; each keeps what its requests were answered and how they progressed. */
const servedBy = () => {
  const siblings = new SseSiblings({ next: 1 })
  const sweeper = new Sweeper()
  onTestFinished(() => sweeper[Symbol.dispose]())
  return async (principal?: string) => {
    const closed = Promise.withResolvers<Failure | undefined>()
    const connection = new Connection(
      {
        kind: 'sse',
        open: () => Promise.resolve(),
        send: () => true,
        abandon: () => undefined,
        closed: closed.promise,
        close: () => Promise.resolve(closed.resolve(undefined)),
      },
      sweeper,
      siblings.idsFor(principal),
    )
    await connection.open()
    const got: unknown[] = []
    const ask = (): void =>
      void connection
        .request({
          build: (id) => ({ id, parts: [] }),
          read: ({ id }) => void got.push(`answer ${String(id)}`),
          progress: () => void got.push('progress'),
          idleMs: 60_000,
          totalMs: 60_000,
          cancel: () => undefined,
        })
        .catch(() => undefined)
    const receive = (message: object): void =>
      connection.receive(readServerMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))))
    return { connection, got, ask, receive }
  }
}
const answer = (id: number): object => ({ id, result: {} })
const progress = (progressToken: number): object => ({ method: 'notifications/progress', params: { progressToken } })

test('3.22 answers and progress that come on the stream of another connection reach their request', async () => {
  const open = servedBy()
  const [main, one, two] = [await open(), await open('p'), await open('p')]
  main.ask()
  one.ask()
  for (const message of [progress(2), answer(2), answer(1), answer(1), answer(3)]) two.receive(message)
  expect([main.got, one.got, two.got]).toEqual([['answer 1'], ['progress', 'answer 2'], []])
})

test('T-19 while callers differ, a connection takes nothing that comes on the stream of another one', async () => {
  const open = servedBy()
  const [main, one, two] = [await open(), await open('p'), await open('q')]
  main.ask()
  one.ask()
  for (const { receive } of [main, two])
    for (const message of [progress(2), answer(1 + Number(receive === main.receive)), answer(3)]) receive(message)
  expect([main.got, one.got, two.got]).toEqual([[], [], []])
  await two.connection.channel.close()
  await Promise.resolve()
  main.receive(answer(2))
  expect(one.got).toEqual(['answer 2'])
})

test('3.22 a server that writes each answer to all streams is heard on the right one only', async () => {
  const open = servedBy()
  const [one, two] = [await open('p'), await open('p')]
  one.ask()
  for (const { receive } of [two, one]) receive(answer(1))
  one.ask()
  for (const { receive } of [two, one]) for (const message of [progress(2), answer(2)]) receive(message)
  expect(one.got).toEqual(['answer 1', 'progress', 'answer 2'])
})

test('3.22 answers to other clients of a server that writes to all streams close no connection', async () => {
  const open = servedBy()
  const one = await open('p')
  one.ask()
  for (let id = 100; id < 120; id++) {
    one.receive(answer(id))
    one.receive({ id: `other-${id}`, result: {} })
  }
  one.receive(answer(1))
  expect(one.got).toEqual(['answer 1'])
})

import { expect, test } from 'vitest'
import { Connection } from '../../../src/rpc/connection.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'
import type { Channel } from '../../../src/transport/channel.ts'
import { Failure } from '../../../src/wire/failure.ts'

test('what a channel takes no more is an oddity if nobody waits for it, and rejects what somebody waits for', async () => {
  const channel: Channel = {
    kind: 'pipe',
    open: () => Promise.resolve(),
    send: () => {
      throw new Failure('exited', 'not running', { executed: 'no' })
    },
    abandon: () => undefined,
    closed: new Promise(() => undefined),
    close: () => Promise.resolve(),
  }
  using sweeper = new Sweeper()
  const connection = new Connection(channel, sweeper)
  const oddities: string[] = []
  connection.serve({ request: () => undefined, notification: () => undefined, oddity: (reason) => oddities.push(reason) })
  await connection.open()

  connection.respond('1', [Buffer.from('{}')])
  connection.refuse('2', -1, 'no')
  connection.notify('notifications/initialized')
  expect(oddities).toEqual(Array(3).fill('a message could not be sent'))

  const request = { read: () => undefined, idleMs: 1_000, totalMs: 1_000, cancel: () => undefined }
  await expect(connection.request({ ...request, build: (id) => ({ id, parts: [] }) })).rejects.toMatchObject({
    kind: 'exited',
    executed: 'no',
  })
})

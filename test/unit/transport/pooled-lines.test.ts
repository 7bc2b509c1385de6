import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { BodyPool } from '../../../src/transport/body-pool.ts'
import { LineWriter } from '../../../src/transport/pipe/line-writer.ts'

type Done = (error?: Error) => void

/** A writer of lines whose peer takes them when it is told to, and a line that lies in pooled memory. */
const open = () => {
  const bodies = new BodyPool()
  const waiting: Done[] = []
  const stream = new Writable({
    write: (_piece, _encoding, done: Done) => void waiting.push(done),
    writev: (_pieces, done: Done) => void waiting.push(done),
  })
  stream.on('error', () => undefined)
  const limits = { maxQueuedBytes: 1_000_000, slowBytes: 1_000_000, stallMs: 10_000, onStall: () => undefined }
  const writer = new LineWriter(stream, { ...limits, bodies })
  const body = bodies.lease(100_000).fill('x')
  bodies.relayed(body)
  return { bodies, waiting, writer, body, stream }
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('the memory of a line is free when its peer has taken all of it, not before', async () => {
  const { bodies, waiting, writer, body } = open()
  writer.write([Buffer.from('{'), body, Buffer.from('}')])
  writer.flush()
  await turn()
  expect(bodies.freeBytes).toBe(0)
  for (const done of waiting) done()
  await turn()
  expect(bodies.freeBytes).toBe(128 * 1024)
  writer.dispose()
})

test('the memory of a line that could not be written is not used again', async () => {
  const { bodies, writer, body, stream } = open()
  writer.write([Buffer.from('{'), body, Buffer.from('}')])
  writer.flush()
  stream.destroy(new Error('gone'))
  await turn()
  expect(bodies.freeBytes).toBe(0)
  writer.dispose()
})

test('only memory of the pool is ever taken back', () => {
  const bodies = new BodyPool()
  const foreign = Buffer.alloc(128 * 1024)
  bodies.relayed(foreign)
  bodies.release([foreign])
  bodies.giveBack(foreign)
  expect(bodies.freeBytes).toBe(0)
})

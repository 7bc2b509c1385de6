/** Requests between a process and its workers: values and errors of each kind arrive as they were. */
import { MessageChannel } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { AdminRefusal } from '../../../src/admin/refusal.ts'
import { Exchange } from '../../../src/commands/serve/exchange.ts'
import type { Port } from '../../../src/commands/serve/exchange.ts'
import { ConfigError } from '../../../src/config/syntax/problems.ts'

const portOf = (port: MessagePort): Port => ({
  send: (message) => (port.postMessage(message), true),
  onMessage: (receive) => void port.on('message', receive),
  onClose: (closed) => void port.on('close', closed),
})
/** The other side answers `ask` with what `answer` returns or throws. */
const asking = (answer: () => unknown): Exchange => {
  const { port1, port2 } = new MessageChannel()
  onTestFinished(() => port1.close())
  const [asking] = [new Exchange(portOf(port1), {}), new Exchange(portOf(port2), { ask: answer })]
  return asking
}
const failing = async (error: unknown): Promise<unknown> => {
  const exchange = asking(() => {
    throw error
  })
  try {
    return await exchange.request('ask')
  } catch (received) {
    return received
  }
}

test('a value', async () => {
  expect(await asking(() => ({ a: [1, new Uint8Array([2])] })).request('ask')).toEqual({ a: [1, new Uint8Array([2])] })
})

test('an error with its facts', async () => {
  const error = Object.assign(new Error('in use'), { code: 'EADDRINUSE', address: '127.0.0.1', port: 7420, other: 1 })
  const received = await failing(error)
  expect(received).toMatchObject({ message: 'in use', code: 'EADDRINUSE', address: '127.0.0.1', port: 7420 })
  expect(received).not.toHaveProperty('other')
})

test('the problems of a configuration', async () => {
  const problem = { place: 'trunkline.yaml:1:1', path: 'listen', message: 'expected a map', remedy: 'write one' }
  expect(await failing(new ConfigError([problem]))).toEqual(new ConfigError([problem]))
})

test('a refusal of the admin interface', async () => {
  const received = await failing(new AdminRefusal(404, 'not_found', 'no server of this name', 3))
  expect(received).toBeInstanceOf(AdminRefusal)
  expect(received).toMatchObject({ status: 404, code: 'not_found', message: 'no server of this name', at: 3 })
})

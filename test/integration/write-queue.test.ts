/** Calls that wait until a server on a pipe has read what was sent before them (`limits.write_queue`, F-12; decision 0184). */
import { expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'

const LONG = 'x'.repeat(600_000)
const call = (n: number, text: string) => ({ name: 'a__t', arguments: { n, text } })

const scene = async (maxWriteQueueBytes: number) => {
  const gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t'], on: { 'tools/call': () => ({ content: [] }) } }) },
    options: { a: { limits: { maxWriteQueueBytes } } },
  })
  const host = await modernHttp.connect(gateway)
  // The caller's link is opened, so that its process is known.
  await host.call('tools/call', call(0, ''))
  const pid = gateway.fake('a').connections.at(-1)?.pid
  if (pid === undefined) throw new Error('the fake has no process')
  const received = () =>
    gateway
      .fake('a')
      .all('tools/call')
      .map(({ params }) => (params?.['arguments'] as { n: number } | undefined)?.n ?? Number.NaN)
  const end = async () => {
    await host[Symbol.asyncDispose]()
    await gateway[Symbol.asyncDispose]()
  }
  return { gateway, host, pid, received, [Symbol.asyncDispose]: end }
}

test('F-12 a limit below one message lets messages through one after the other', async () => {
  await using at = await scene(1_024)
  const numbers = Array.from({ length: 12 }, (_, n) => n + 1)
  await Promise.all(numbers.map((n) => at.host.call('tools/call', call(n, n % 2 === 0 ? LONG : 'short'))))
  expect(at.received().toSorted((a, b) => a - b)).toEqual([0, ...numbers])
})

test('F-12 a call that is cancelled while it waits never reaches its server; those behind it do', async () => {
  await using at = await scene(100_000)
  process.kill(at.pid, 'SIGSTOP')
  const [first, second, third] = [1, 2, 3].map((n) => at.host.begin('tools/call', call(n, LONG)))
  await expect.poll(() => at.gateway.running.fleet.get('a')?.inFlight).toBe(3)
  second?.cancel()
  await expect.poll(() => at.gateway.running.fleet.get('a')?.inFlight).toBe(2)
  process.kill(at.pid, 'SIGCONT')
  await Promise.all([first?.response, third?.response])
  expect(at.received()).toEqual([0, 1, 3])
})

test('F-12 of a call that is cancelled while it waits its server sees neither the call nor the cancellation', async () => {
  await using at = await scene(1_000_000)
  process.kill(at.pid, 'SIGSTOP')
  const [first, second] = [1, 2].map((n) => at.host.begin('tools/call', call(n, LONG)))
  await expect.poll(() => at.gateway.running.fleet.get('a')?.inFlight).toBe(2)
  second?.cancel()
  await expect.poll(() => at.gateway.running.fleet.get('a')?.inFlight).toBe(1)
  process.kill(at.pid, 'SIGCONT')
  await first?.response
  await at.host.call('tools/call', call(3, ''))
  expect(at.received()).toEqual([0, 1, 3])
  expect(at.gateway.fake('a').all('notifications/cancelled')).toEqual([])
})

test('F-12 calls that wait when their process is killed are executed by the next one, once each', async () => {
  await using at = await scene(100_000)
  process.kill(at.pid, 'SIGSTOP')
  const numbers = [1, 2, 3, 4]
  const pending = numbers.map((n) => at.host.begin('tools/call', call(n, LONG)).response)
  await expect.poll(() => at.gateway.running.fleet.get('a')?.inFlight).toBe(4)
  process.kill(at.pid, 'SIGKILL')
  const answers = await Promise.all(pending)
  expect(answers.map(({ result }) => result?.['isError'] === true)).toEqual([true, false, false, false])
  expect(at.received().toSorted((a, b) => a - b)).toEqual([0, 2, 3, 4])
})

test('F-12 of calls that wait when their process is killed, one that was cancelled before reaches no process', async () => {
  await using at = await scene(100_000)
  process.kill(at.pid, 'SIGSTOP')
  const calls = [1, 2, 3, 4].map((n) => at.host.begin('tools/call', call(n, LONG)))
  await expect.poll(() => at.gateway.running.fleet.get('a')?.inFlight).toBe(4)
  const [cancelled] = calls.splice(2, 1)
  cancelled?.cancel()
  await expect.poll(() => at.gateway.running.fleet.get('a')?.inFlight).toBe(3)
  process.kill(at.pid, 'SIGKILL')
  const answers = await Promise.all(calls.map(({ response }) => response))
  expect(answers.map(({ result }) => result?.['isError'] === true)).toEqual([true, false, false])
  expect(at.received().toSorted((a, b) => a - b)).toEqual([0, 2, 4])
  expect(at.gateway.fake('a').all('notifications/cancelled')).toEqual([])
})

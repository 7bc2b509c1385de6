/** What an attached `trunkline stdio` does with the pipes of one gateway after the other (B296). */
import { duplexPair, PassThrough } from 'node:stream'
import type { Duplex } from 'node:stream'
import { createInterface } from 'node:readline'
import { afterEach, expect, test, vi } from 'vitest'
import { pipeTo, relay } from '../../../src/commands/serve/relay.ts'
import { Journal } from '../../support/fakes/journal.ts'
import { INITIALIZE, message } from '../../support/cli.ts'

type Line = Readonly<Record<string, unknown>>

/** Lines of a stream as they come, parsed. */
const linesOf = (stream: NodeJS.ReadableStream): Journal<Line> => {
  const lines = new Journal<Line>()
  createInterface({ input: stream }).on('line', (line) => lines.push(JSON.parse(line) as Line))
  return lines
}

/** A gateway's end of a pipe. */
interface Gateway {
  readonly heard: Journal<Line>
  say(line: Line): void
  /** Bytes as they are. */
  part(text: string): void
  end(): void
  /** Its own stream: what it hears, and says. */
  readonly stream: Duplex
}

const interrupts: AbortController[] = []

// A relay that still looks for a gateway would do so in the simulated time of other files, too.
afterEach(() => interrupts.splice(0).forEach((interrupt) => interrupt.abort()))

const setUp = (more: Partial<Parameters<typeof relay>[1]> = {}) => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const offered: Duplex[] = []
  const inlined = new Journal<Gateway>()
  const interrupt = new AbortController()
  const remarks: string[] = []
  const open = (): [Duplex, Gateway] => {
    const [near, far] = duplexPair()
    return [
      near,
      {
        heard: linesOf(far),
        say: (line) => void far.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`),
        part: (text) => void far.write(text),
        end: () => void near.destroy(),
        stream: far,
      },
    ]
  }
  const start = (): Gateway => {
    const [near, gateway] = open()
    offered.push(near)
    return gateway
  }
  const [first, gateway] = open()
  const ended = relay(first, {
    input,
    output,
    connect: async () => offered.shift(),
    inline: async () => {
      const [near, served] = open()
      inlined.push(served)
      return near
    },
    interrupted: interrupt.signal,
    giveUpMs: 60_000,
    retryMs: 1,
    remark: (text) => void remarks.push(text),
    ...more,
  })
  interrupts.push(interrupt)
  return {
    host: linesOf(output),
    input,
    output,
    write: (text: string) => void input.write(text),
    gateway,
    start,
    inlined,
    ended,
    remarks,
  }
}

const introduce = async ({ host, write, gateway }: ReturnType<typeof setUp>): Promise<void> => {
  write(INITIALIZE + message(undefined, 'notifications/initialized'))
  await gateway.heard.until(({ method }) => method === 'notifications/initialized')
  gateway.say({ id: 0, result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } } })
  await host.until(({ id }) => id === 0)
}
/** Answers what the relay asks for itself, and returns the id. */
const accept = async (gateway: Gateway, method: string, result: object = {}): Promise<void> => {
  const { id } = await gateway.heard.until((line) => line['method'] === method)
  expect(id).toMatch(/^trunkline-relay-/)
  gateway.say({ id, result })
}

test('what the host has set is set again: introduction, level, subscriptions; only lists that may change are told', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { host, write, gateway, start } = relayed
  write(message(1, 'logging/setLevel', { level: 'error' }))
  write(message(2, 'resources/subscribe', { uri: 'x://a' }) + message(3, 'resources/subscribe', { uri: 'x://b' }))
  write(message(4, 'resources/unsubscribe', { uri: 'x://a' }))
  await gateway.heard.until(({ id }) => id === 4)
  for (const id of [1, 2, 3, 4]) gateway.say({ id, result: {} })
  await host.until(({ id }) => id === 4)
  const next = start()
  gateway.end()
  await accept(next, 'initialize', { capabilities: { tools: { listChanged: true }, prompts: {} } })
  await accept(next, 'logging/setLevel')
  await accept(next, 'resources/subscribe')
  await host.until(({ method }) => method === 'notifications/resources/updated')
  expect(next.heard.entries.slice(1).map(({ method, params }) => [method, params])).toEqual([
    ['notifications/initialized', {}],
    ['logging/setLevel', { level: 'error' }],
    ['resources/subscribe', { uri: 'x://b' }],
  ])
  expect(host.entries.slice(5).map(({ method, params }) => [method, params])).toEqual([
    ['notifications/tools/list_changed', undefined],
    ['notifications/resources/updated', { uri: 'x://b' }],
  ])
})

test('B296 what a gateway has refused is not set again, and what it replaced is', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { host, write, gateway, start } = relayed
  write(message(1, 'logging/setLevel', { level: 'error' }) + message(2, 'resources/subscribe', { uri: 'x://a' }))
  write(message(3, 'logging/setLevel', { level: 'verbose' }) + message(4, 'resources/subscribe', { uri: 'x://b' }))
  write(message(5, 'resources/unsubscribe', { uri: 'x://a' }))
  await gateway.heard.until(({ id }) => id === 5)
  for (const id of [1, 2]) gateway.say({ id, result: {} })
  for (const id of [3, 4, 5]) gateway.say({ id, error: { code: -32602, message: 'no' } })
  await host.until(({ id }) => id === 5)
  const next = start()
  gateway.end()
  await accept(next, 'initialize', { capabilities: {} })
  await host.until(({ method }) => method === 'notifications/resources/updated')
  write(message(6, 'ping'))
  await next.heard.until(({ id }) => id === 6)
  expect(next.heard.entries.slice(2, -1).map(({ method, params }) => [method, params])).toEqual([
    ['logging/setLevel', { level: 'error' }],
    ['resources/subscribe', { uri: 'x://a' }],
  ])
  expect(host.entries.slice(6).map(({ params }) => params)).toEqual([{ uri: 'x://a' }])
})

test('B296 B141 an initialize that the host has cancelled is repeated, since it cannot be cancelled', async () => {
  const relayed = setUp()
  const { write, gateway, start } = relayed
  write(INITIALIZE + message(undefined, 'notifications/cancelled', { requestId: 0 }))
  await introduce({ ...relayed, write: (text) => write(text.replace(INITIALIZE, '')) })
  const next = start()
  gateway.end()
  await accept(next, 'initialize', { capabilities: {} })
})

test('B296 B206 the requests of a batch with an invalid element are answered when the gateway ends', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { host, write, gateway } = relayed
  write(`[5,${message(1, 'tools/call', { name: 'x' }).trim()},${message(2, 'ping').trim()}]\n`)
  await gateway.heard.until((line) => Array.isArray(line))
  gateway.end()
  expect(await host.until(({ id }) => id === 1)).toMatchObject({ result: { isError: true } })
})

test('the gateway’s questions are taken back, lists are asked for again, calls are answered, and waiting lines keep their order', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { host, write, gateway, start } = relayed
  gateway.say({ id: 'q', method: 'elicitation/create', params: {} })
  write(message(1, 'tools/call', { name: 'x' }) + message(2, 'tools/list') + message(3, 'resources/read', { uri: 'x://a' }))
  await gateway.heard.until(({ id }) => id === 3)
  await host.until(({ id }) => id === 'q')
  gateway.end()
  await host.until(({ id }) => id === 3)
  expect(host.entries.slice(2)).toEqual([
    expect.objectContaining({ method: 'notifications/cancelled', params: { requestId: 'q', reason: 'the gateway was stopped' } }),
    expect.objectContaining({ id: 1, result: expect.objectContaining({ isError: true }) as object }),
    expect.objectContaining({ id: 3, error: expect.objectContaining({ code: -32603 }) as object }),
  ])
  write(message(4, 'tools/call', { name: 'y' }) + message(5, 'ping'))
  const next = start()
  await accept(next, 'initialize', { capabilities: {} })
  await next.heard.until(({ id }) => id === 5)
  expect(next.heard.entries.map(({ id }) => id)).toEqual([expect.any(String), undefined, 2, 4, 5])
})

test('a gateway that says it stops gets no new request, but answers and cancellations', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { host, write, gateway, start } = relayed
  gateway.say({ id: 'q', method: 'elicitation/create', params: {} })
  gateway.say({ method: 'notifications/dev.trunkline/draining' })
  await gateway.heard.until(({ method }) => method === 'notifications/dev.trunkline/holding')
  write(message(9, 'tools/call', { name: 'late' }))
  write(
    `${JSON.stringify({ jsonrpc: '2.0', id: 'q', result: {} })}\n${message(undefined, 'notifications/cancelled', { requestId: 1 })}`,
  )
  await gateway.heard.until(({ method }) => method === 'notifications/cancelled')
  expect(gateway.heard.entries.some(({ id }) => id === 9)).toBe(false)
  const next = start()
  gateway.end()
  await accept(next, 'initialize', { capabilities: {} })
  await next.heard.until(({ id }) => id === 9)
  expect(host.entries.filter(({ method }) => method?.toString().includes('trunkline') === true)).toEqual([])
})

test('an initialize that was not answered is sent again, as the host wrote it', async () => {
  const { host, write, gateway, start } = setUp()
  write(INITIALIZE)
  await gateway.heard.until(() => true)
  const next = start()
  gateway.end()
  await next.heard.until(({ id }) => id === 0)
  next.say({ id: 0, result: { capabilities: { tools: { listChanged: true } } } })
  await host.until(({ id }) => id === 0)
  expect(host.entries).toHaveLength(1)
})

test('half a line of a gateway that died does not reach the host', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { host, write, gateway, start } = relayed
  write(message(1, 'ping'))
  await gateway.heard.until(({ id }) => id === 1)
  gateway.part(
    `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: {} })}\n{"jsonrpc":"2.0","id":1,"resu`,
  )
  await host.until(({ method }) => method === 'notifications/message')
  const next = start()
  gateway.end()
  await accept(next, 'initialize', { capabilities: {} })
  await next.heard.until(({ id }) => id === 1)
  next.say({ id: 1, result: {} })
  await host.until(({ id }) => id === 1)
  expect(host.entries.map(({ id }) => id)).toEqual([0, undefined, 1])
})

/** Ends the gateway, and resolves once the one in here has answered what the host sent then. */
const servesInHere = async ({ inlined, gateway, write, host }: ReturnType<typeof setUp>): Promise<void> => {
  gateway.end()
  write(message(1, 'ping'))
  const served = await inlined.until(() => true)
  await accept(served, 'initialize', { capabilities: {} })
  await served.heard.until(({ id }) => id === 1)
  served.say({ id: 1, result: {} })
  await host.until(({ id }) => id === 1)
}

test('where no gateway comes in time, it serves in here, with the same session', async () => {
  const relayed = setUp({ giveUpMs: 5 })
  await introduce(relayed)
  await servesInHere(relayed)
  expect(relayed.remarks.at(-1)).toContain('serving here')
})

test('an endpoint that is not there any more ends it with the reason', async () => {
  const { gateway, ended } = setUp({ connect: () => Promise.reject(new Error('no server "a"')) })
  gateway.end()
  await expect(ended).rejects.toThrow('no server "a"')
})

test('lines that fill the pipe hold up the next ones until the other side has read them, in both directions', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { host, input, output, write, gateway } = relayed
  const text = 'x'.repeat(300_000)
  const ids = [1, 2, 3, 4, 5, 6, 7, 8]
  const waiting = (): number => input.readableLength + input.writableLength
  const settled = async (isHeldUp: () => boolean): Promise<void> => {
    await vi.waitUntil(isHeldUp)
    // Whatever is not held up goes on meanwhile.
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  }

  gateway.stream.pause()
  for (const id of ids) write(message(id, 'tools/call', { text }))
  await settled(() => input.isPaused())
  expect(waiting()).toBeGreaterThan(5 * text.length)
  gateway.stream.resume()
  await gateway.heard.until(({ id }) => id === 8)

  output.pause()
  for (const id of ids) gateway.say({ id, result: { text } })
  await settled(() => output.writableNeedDrain)
  expect(output.readableLength + output.writableLength).toBeLessThan(3 * text.length)
  output.resume()
  await host.until(({ id }) => id === 8)
})

test('the end of the host is passed on, and waits for what it asked', async () => {
  const { input, write, gateway, ended, host } = setUp()
  write(message(1, 'ping'))
  await gateway.heard.until(() => true)
  input.end()
  gateway.say({ id: 1, result: {} })
  await host.until(({ id }) => id === 1)
  gateway.end()
  await ended
})

test('the pipes to host and gateway have as many listeners after many large lines as before', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { host, input, write, gateway, output } = relayed
  const counts = (): number[] => [output, input].map((stream) => stream.listenerCount('close') + stream.listenerCount('drain'))
  const before = counts()
  const text = 'x'.repeat(100_000)
  for (let id = 1; id <= 12; id++) {
    write(message(id, 'tools/call', { text }))
    await gateway.heard.until((line) => line['id'] === id)
    gateway.say({ id, result: { text } })
    await host.until((line) => line['id'] === id)
  }
  await vi.waitFor(() => expect(counts()).toEqual(before))
})

test('B296 a gateway that refuses the session is asked again at intervals, and after the given time it serves in here', async () => {
  let connects = 0
  const relayed = setUp({
    giveUpMs: 300,
    retryMs: 100,
    connect: async () => {
      connects++
      const [near, far] = duplexPair()
      const heard = linesOf(far)
      void heard
        .until(({ method }) => method === 'initialize')
        .then(({ id }) => far.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'overload' } })}\n`))
      return near
    },
  })
  await introduce(relayed)
  await servesInHere(relayed)
  expect(connects).toBeLessThan(6)
})

test('a request that waits for the next gateway does not reach it after its cancellation', async () => {
  const relayed = setUp()
  await introduce(relayed)
  const { write, gateway, start } = relayed
  gateway.say({ method: 'notifications/dev.trunkline/draining' })
  await gateway.heard.until(({ method }) => method === 'notifications/dev.trunkline/holding')
  write(message(9, 'tools/call', { name: 'late' }))
  write(message(undefined, 'notifications/cancelled', { requestId: 9 }) + message(10, 'ping'))
  const next = start()
  gateway.end()
  await accept(next, 'initialize', { capabilities: {} })
  await next.heard.until(({ id }) => id === 10)
  const late = next.heard.entries.filter(({ id, method }) => id === 9 || method === 'notifications/cancelled')
  expect(late).toEqual([])
})

test('a gateway in here that cannot start ends it with the reason', async () => {
  const inline = vi.fn(async () => pipeTo(() => Promise.reject(new Error('the file cannot be opened'))))
  const { gateway, ended } = setUp({ giveUpMs: 5, inline })
  gateway.end()
  await expect(ended).rejects.toThrow('the file cannot be opened')
  expect(inline).toHaveBeenCalledOnce()
})

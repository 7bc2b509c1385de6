/** Layers of a program that embeds the gateway, and its own calls. */
import { existsSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { CallError, complete, createGateway, Payload } from '../../src/index.ts'
import type { Layer } from '../../src/index.ts'
import { listening } from '../support/listening.ts'

const fake = (...args: string[]) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL('../support/children/fake-server.ts', import.meta.url)), ...args],
})
const listen = { http: { bind: '127.0.0.1:0' } }
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

test('a layer is called once, and keeps its state over reloads', async () => {
  let built = 0
  const counting: Layer = (inner) => {
    built++
    let calls = 0
    return async (call) => {
      if (call.method !== 'tools/call') return inner(call)
      await inner(call)
      return complete(Payload.of({ content: [], calls: ++calls }))
    }
  }
  const configuration = { listen, servers: { a: fake('good') } }
  await using gateway = await createGateway({ configuration, layers: [counting], log: silent })
  expect((await gateway.call('a__echo', { text: 'x' })).json).toContain('"calls":1')
  await gateway.reload({ ...configuration, naming: { max_length: 50 } })
  expect((await gateway.call('a__echo', { text: 'x' })).json).toContain('"calls":2')
  expect(built).toBe(1)
})

test.for<readonly [what: string, layer: Layer, message: RegExp]>([
  ['nothing', () => () => undefined as never, /^layers\[1\] answered tools\/call with undefined: return what the next/],
  ['a text', () => () => 'x' as never, /^layers\[1\] answered tools\/call with a string: /],
  ['a plain result', () => () => Promise.resolve(complete({ content: [] } as never)), /with an object as result: .*Payload\.of/],
  ['another kind', () => () => Promise.resolve({ kind: 'ok', result: Payload.of({}) } as never), /as result: /],
])('a layer that answers %s is named in the error', async ([, layer, message]) => {
  const passing: Layer = (inner) => (call) => inner(call)
  const configuration = { listen, servers: { a: fake('good') } }
  await using gateway = await createGateway({ configuration, layers: [passing, layer], log: silent })
  await expect(gateway.call('a__echo', { text: 'x' })).rejects.toThrow(message)
})

test('a handler in place of a layer is refused at the start', async () => {
  const handler = (() => Promise.resolve(complete(Payload.of({})))) as never
  await expect(createGateway({ configuration: { listen, servers: {} }, layers: [handler], log: silent })).rejects.toThrow(
    'layers[0] returned a Promise: a layer gets the next handler and returns a handler',
  )
})

const BIG = 'x'.repeat(12_000_000)

/** A legacy server over HTTP whose results are so large that they are relayed while they are received. */
const startBigServer = async () => {
  const server = createServer(async (request, response) => {
    const message = (request.method === 'POST' ? await json(request) : {}) as { id?: number; method?: string }
    const results: Record<string, object> = {
      initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'big', version: '1' } },
      'tools/list': { tools: [{ name: 'big', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: BIG }] },
    }
    const result = results[message.method ?? '']
    if (message.id === undefined) return void response.writeHead(request.method === 'POST' ? 202 : 405).end()
    const end = result === undefined ? { error: { code: -32601, message: 'no' } } : { result }
    const text = JSON.stringify({ jsonrpc: '2.0', id: message.id, ...end })
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': text.length })
    response.end(text)
  })
  return listening(server)
}

test('a layer reads a large result of a call that a host could get while it is received', async () => {
  await using server = await startBigServer()
  const sizes: number[] = []
  const measuring: Layer = (inner) => async (call) => {
    const outcome = await inner(call)
    if (call.method === 'tools/call') sizes.push(Buffer.concat([...outcome.result.parts()]).length)
    return outcome
  }
  const configuration = { listen, servers: { a: { url: `${server.url}/mcp` } } }
  await using gateway = await createGateway({ configuration, layers: [measuring], log: silent })
  await gateway.call('a__big')
  const response = await fetch(gateway.urls[0] ?? '', {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': 'a__big',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'a__big',
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  })
  expect((await response.text()).includes(BIG)).toBe(true)
  expect(sizes).toEqual([expect.any(Number), expect.any(Number)])
  expect(Math.min(...sizes)).toBeGreaterThan(BIG.length)
})

test('the end waits for an open call of the program, and refuses later ones', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'tl-embedded-'))
  const [log, until] = [join(folder.path, 'log'), join(folder.path, 'until')]
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  const layers: Layer[] = [
    (inner) => (call) => {
      const outcome = inner(call)
      reach()
      return outcome
    },
  ]
  await using gateway = await createGateway({ configuration: { listen, servers: { a: fake('good', log) } }, layers, log: silent })
  await gateway.call('a__echo', { text: 'x' })
  const open = gateway.call('a__wait', { until })
  await reached
  const closed = gateway.close()
  // The addresses are closed at the same moment at which later calls are refused.
  await expect
    .poll(() => gateway.call('a__echo', { text: 'x' }).then(String, (error: unknown) => error))
    .toBeInstanceOf(CallError)
  expect(existsSync(until)).toBe(false)
  writeFileSync(until, '')
  expect(await open).toMatchObject({ isError: false })
  await closed
})

test('a call whose layer never answers is rejected once the gateway is closed', async () => {
  const never: Layer = () => () => new Promise(() => undefined)
  const configuration = { listen, reload: { drain: '6s' }, servers: {} }
  const gateway = await createGateway({ configuration, layers: [never], log: silent })
  const stuck = gateway.call('a__echo').catch((error: unknown) => error)
  await gateway.close()
  const error = await stuck
  expect(error).toBeInstanceOf(CallError)
  expect(error).toMatchObject({ kind: 'shutting_down', message: 'the gateway was closed before the call had a result' })
})

test.for<readonly [what: string, layer: Layer]>([
  ['its layer never answers', () => () => new Promise(() => undefined)],
  ['its server does not answer', (inner) => (call) => inner(call)],
])('a call that its program cancels is rejected while %s, and the end does not wait for it', async ([, layer]) => {
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  const reporting: Layer = (inner) => (call) => {
    reach()
    return inner(call)
  }
  const configuration = { listen, reload: { drain: '60s' }, servers: { a: fake('good') } }
  await using folder = await mkdtempDisposable(join(tmpdir(), 'tl-embedded-'))
  await using gateway = await createGateway({ configuration, layers: [reporting, layer], log: silent })
  const cancel = new AbortController()
  const error = gateway.call('a__wait', { until: join(folder.path, 'until') }, cancel.signal).catch((e: unknown) => e)
  await reached
  cancel.abort()
  expect(await error).toBeInstanceOf(CallError)
  expect(await error).toMatchObject({ kind: 'cancelled', message: 'the call was cancelled' })
  const late = gateway.call('a__echo', { text: 'x' }, cancel.signal)
  await expect(late).rejects.toMatchObject({ kind: 'cancelled', message: 'the call was cancelled' })
})

test.for<readonly [what: string, given: readonly unknown[], message: string]>([
  ['no name', [], 'expected the exposed name of a tool, got undefined'],
  ['a list', ['a__echo', [1]], 'expected the arguments of a__echo as an object, got a list'],
  ['null', ['a__echo', null], 'expected the arguments of a__echo as an object, got null'],
  ['options', ['a__echo', {}, { timeout: 5 }], 'expected an AbortSignal, got an object'],
])('a call with %s is refused with what was expected', async ([, given, message]) => {
  await using gateway = await createGateway({ configuration: { listen, servers: {} }, log: silent })
  await expect(gateway.call(...(given as [string]))).rejects.toThrow(message)
})

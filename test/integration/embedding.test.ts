/** The gateway inside another program. */
import { existsSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ConfigError, createGateway, Refusal } from '../../src/index.ts'
import type { Layer, Log } from '../../src/index.ts'

const fake = (prefix: string) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL('../support/children/fake-server.ts', import.meta.url))],
  prefix,
})
const listen = { http: { bind: '127.0.0.1:0' } }
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

test('serves a configuration object at its URLs, calls its tools, and ends', async () => {
  const gateway = await createGateway({ configuration: { listen, servers: { a: fake('a') } }, log: silent })
  expect(gateway.urls).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/)])
  expect(await gateway.call('a__add', { a: 1, b: 2 })).toEqual({
    isError: false,
    json: '{"content":[{"type":"text","text":"[1,2]"}],"isError":false}',
  })
  expect(gateway.tools().map(({ name }) => name)).toContain('a__echo')
  expect(gateway.servers()).toMatchObject([{ key: 'a', state: 'healthy' }])
  await expect(gateway.call('nope')).rejects.toMatchObject({ kind: 'refused' })
  await gateway.reload({ listen, servers: { a: fake('b') } })
  expect(await gateway.call('b__echo', { text: 'x' })).toMatchObject({ isError: false })
  await gateway.close()
  await expect(fetch(gateway.urls[0] ?? 'http://127.0.0.1:1/')).rejects.toThrow()
})

test('a reload after the end opens no address and starts no server', async () => {
  const gateway = await createGateway({ configuration: { listen, servers: {} }, log: silent })
  const next = { listen: { http: { bind: ['127.0.0.1:0', '[::1]:0'] } }, servers: { a: fake('a') } }
  const ended = gateway.close()
  await expect(gateway.reload(next)).rejects.toThrow('the gateway is stopping')
  await ended
  expect(gateway.servers()).toEqual([])
  for (const url of gateway.urls) await expect(fetch(url)).rejects.toThrow()
})

test('of two reloads at once the later one is in force, and neither is mixed with the other', async () => {
  await using gateway = await createGateway({ configuration: { listen, servers: {} }, log: silent })
  const rule = { name: 'none', when: 'call.name == "x"', decision: 'deny', reason: 'not here' }
  await Promise.all([
    // Takes longer: policies are compiled.
    gateway.reload({ listen, servers: { a: fake('a') }, policy: { rules: [rule] } }),
    gateway.reload({ listen, servers: { b: fake('b') } }),
  ])
  expect(gateway.servers().map(({ key }) => key)).toEqual(['b'])
})

test('an object passes the same validation as a file, with all problems at once', async () => {
  const error: unknown = await createGateway({ configuration: { nameing: {}, servers: { a: { comand: 'x' } } } }).catch(
    (e: unknown) => e,
  )
  expect(error).toBeInstanceOf(ConfigError)
  expect((error as ConfigError).message.split('\n')).toEqual([
    'configuration: unknown key "nameing"; did you mean "naming"?',
    'configuration servers.a: unknown key "comand"; did you mean "command"?',
  ])
})

test.each([
  ['trunkline.yaml', /^configuration: expected an object/],
  [null, /^configuration: expected an object/],
  [{ files: 'trunkline.yaml' }, /^configuration: unknown key "files"/],
])('a configuration %j, as plain JavaScript may give it, is a ConfigError', async (given, message) => {
  const error: unknown = await createGateway({ configuration: given as never, listen: false, log: silent }).catch(
    (e: unknown) => e,
  )
  expect(error).toBeInstanceOf(ConfigError)
  expect((error as ConfigError).message).toMatch(message)
})

test('listen: false binds nothing', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'tl-embedded-'))
  const unix = join(folder.path, 'mcp.sock')
  const configuration = { listen: { ...listen, unix }, servers: {} }
  await using gateway = await createGateway({ configuration, listen: false, log: silent })
  expect(gateway.urls).toEqual([])
  await gateway.reload(configuration)
  expect(gateway.urls).toEqual([])
  expect(existsSync(unix)).toBe(false)
})

test.each([
  [undefined, ['no server is configured']],
  [1, ['no server is configured']],
  [2, ['no server is configured', 'listen.workers works only on the command line: this gateway is one process']],
] as const)('where the configuration says %s workers, the log warns %j', async (workers, expected) => {
  const warned: string[] = []
  const log: Log = { ...silent, warn: (_facts, text) => void warned.push(text) }
  const configuration = { listen: { ...listen, ...(workers !== undefined && { workers }) }, servers: {} }
  await using gateway = await createGateway({ configuration, log })
  expect(gateway.urls).toHaveLength(1)
  expect(warned).toEqual(expected)
})

const BAD_LAYERS: readonly (readonly [what: string, layer: Layer, code: number, logged: string | undefined])[] = [
  ['throws at once', () => () => raise(new Error('at once')), -32603, 'at once'],
  ['rejects', () => () => Promise.reject(new Error('later')), -32603, 'later'],
  // What a program in plain JavaScript may do.
  ['rejects with a text', () => () => rejectedWith('a text'), -32603, 'a text'],
  ['answers nothing', () => () => Promise.resolve(undefined) as never, -32603, 'undefined'],
  ['returns nothing', () => () => undefined as never, -32603, 'undefined'],
  ['throws a refusal at once', () => () => raise(new Refusal(-32600, 'not on Fridays')), -32600, undefined],
  ['rejects with a refusal', () => () => Promise.reject(new Refusal(-32600, 'not on Fridays')), -32600, undefined],
]

const raise = (error: Error): never => {
  throw error
}

/** A rejection with any value. */
const rejectedWith = (value: unknown): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>()
  reject(value)
  return promise
}

const post = async (url: string, headers: Record<string, string>, message: object): Promise<Response> =>
  await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })

/** The first message of an answer, whether it is JSON or a stream. */
const messageOf = async (response: Response): Promise<{ error?: { code: number; message: string } }> => {
  const text = await response.text()
  const line = text.startsWith('{')
    ? text
    : text
        .split('\n')
        .find((each) => each.startsWith('data: {'))
        ?.slice(6)
  return JSON.parse(line ?? 'null') as { error?: { code: number; message: string } }
}

const add = { id: 7, method: 'tools/call', params: { name: 'a__add', arguments: { a: 1, b: 2 } } }

test.for(BAD_LAYERS)('F-31 a layer that %s costs that call alone, in both eras', async ([, layer, code, logged]) => {
  const errors: object[] = []
  const log = { ...silent, error: (facts: object, message: string) => void errors.push({ ...facts, message }) }
  let isOn = true
  const layers: Layer[] = [(inner) => (call) => (isOn ? layer(inner)(call) : inner(call))]
  await using gateway = await createGateway({ configuration: { listen, servers: { a: fake('a') } }, layers, log })
  const url = gateway.urls[0] ?? ''
  const opened = await post(
    url,
    {},
    {
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'h', version: '1' } },
    },
  )
  await opened.text()
  const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' }
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
  const modern = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'a__add' }
  const calls = {
    legacy: async () => await messageOf(await post(url, session, add)),
    modern: async () => await messageOf(await post(url, modern, { ...add, params: { ...add.params, _meta: meta } })),
  }
  for (const call of Object.values(calls)) {
    const { error } = await call()
    expect(error).toMatchObject({ code, message: code === -32603 ? 'internal error' : 'not on Fridays' })
  }
  isOn = false
  for (const call of Object.values(calls)) expect(await call()).toMatchObject({ result: { content: [{ text: '[1,2]' }] } })
  if (logged === undefined) expect(errors).toEqual([])
  else expect(errors[0]).toMatchObject({ method: 'tools/call', error: expect.stringContaining(logged) as string })
})

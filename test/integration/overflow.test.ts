/** Results over the limit of their tool: what is shown, what is read behind the link, and for how long. */
import { describe, expect, test } from 'vitest'
import { DEFAULT_GATEWAY } from '../../src/gateway/options.ts'
import { curated } from '../support/curation.ts'
import { describes, everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import { KEY, RpcError } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import { TASK, TASKS, taskServer } from './tasks/task-server.ts'

const LINES = Array.from({ length: 30 }, (_, at) => `line ${at}: é\n`).join('')
const LIMIT = { tools: { log: { result: { max_tokens: 25 } } } }
const logs = (spec: FakeSpec = {}): FakeSpec =>
  fake.of({ tools: ['log', 'other'], on: { 'tools/call': () => ({ content: [{ type: 'text', text: LINES }] }) }, ...spec })

const start = async (spec: FakeSpec, entry: object, results = {}) =>
  startGateway({
    servers: { a: spec },
    options: { a: await curated(entry) },
    gateway: { results: { ...DEFAULT_GATEWAY.results, ...results } },
  })

interface Block {
  readonly type: string
  readonly text?: string
  readonly uri?: string
}
const callLog = async (host: Host): Promise<Block[]> => (await host.call('tools/call', { name: 'a__log' }))['content'] as Block[]
const textAt = async (host: Host, uri: string): Promise<string> => {
  const { contents } = await host.call('resources/read', { uri })
  expect(contents).toEqual([{ uri, mimeType: 'text/plain', text: expect.any(String) }])
  return (contents as { text: string }[])[0]!.text
}

test('B107 at a bridge, too, a host that knows no links is told in text where the rest is', async () => {
  await using gateway = await start(logs(), LIMIT)
  await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp', revision: '2025-03-26' })
  const content = (await host.call('tools/call', { name: 'log' }))['content'] as Block[]
  expect(content.map(({ type }) => type)).toEqual(['text', 'text', 'text'])
  const [uri] = /gateway\+result:\S+/.exec(content[2]!.text ?? '') ?? []
  expect(await textAt(host, uri ?? '')).toContain('line ')
})

describe.each(everyTransport)('over $name', ({ connect, era }) => {
  test('the beginning is shown, the rest is read in parts, and no server is asked for it', async () => {
    await using gateway = await start(logs(), LIMIT)
    await using host = await connect(gateway)
    const [head, words, link] = await callLog(host)
    expect(words!.text).toMatch(
      /^\[The result goes on: about \d+ of \d+ tokens are not shown\. Read the resource gateway\+result:/,
    )
    expect(link).toMatchObject({ type: 'resource_link', uri: expect.stringMatching(/^gateway\+result:\/\/\/[\w-]{22}$/) })
    let whole = head!.text ?? ''
    for (let uri = link!.uri; uri !== undefined;) {
      const [part, more = ''] = (await textAt(host, uri)).split('\n\n[')
      whole += part
      uri = /read (\S+)\]$/.exec(more)?.[1]
      // The line feed in front of the two that set the note apart.
      if (uri !== undefined) whole += '\n'
    }
    expect(whole.replaceAll('\n', '')).toBe(LINES.replaceAll('\n', ''))
    expect(gateway.fake('a').all('resources/read')).toEqual([])
    expect((await host.call('tools/call', { name: 'a__other' }))['content']).toEqual([{ type: 'text', text: LINES }])
  })

  test('what is gone or was never there is not found, and no server is asked for it', async () => {
    await using gateway = await start(
      logs({ resources: ['file:///r'] }),
      { ...LIMIT, resources: { rewrite: 'identity' } },
      { maxBytes: 700 },
    )
    await using host = await connect(gateway)
    const uri = (await callLog(host))[2]!.uri ?? ''
    const next = (await callLog(host))[2]!.uri ?? ''
    expect(await textAt(host, next)).toContain('line ')
    const code = era === 'modern' ? -32602 : -32002
    for (const gone of [uri, 'gateway+result:///x', 'gateway+result:'])
      await expect(host.call('resources/read', { uri: gone })).rejects.toMatchObject({
        code,
        message: `Resource not found: ${gone} (kept for limits.result_ttl, within limits.results)`,
      })
    expect(gateway.fake('a').all('resources/read')).toEqual([])
  })
})

test('B107 a host that knows no links is told in text where the rest is', async () => {
  await using gateway = await start(logs(), LIMIT)
  await using host = await legacyHttp.connect(gateway, { revision: '2025-03-26' })
  const blocks = await callLog(host)
  expect(blocks.map(({ type }) => type)).toEqual(['text', 'text', 'text'])
  const uri = /gateway\+result:\S+$/.exec(blocks[2]!.text ?? '')?.[0] ?? ''
  expect(await textAt(host, uri)).toContain('line ')
})

test('what is too much to be kept is cut and told', async () => {
  await using gateway = await start(logs(), LIMIT, { maxBytes: 10 })
  await using host = await modernHttp.connect(gateway)
  const blocks = await callLog(host)
  expect(blocks.map(({ type }) => type)).toEqual(['text', 'text'])
  expect(blocks[1]!.text).toMatch(/^\[The result is cut here/)
})

test.each(everyFakeKind)('links of a %s server beside the text keep their exposed form', async (kind) => {
  const content = [
    { type: 'resource_link', uri: 'file:///r', name: 'r' },
    { type: 'text', text: LINES },
  ]
  await using gateway = await start(logs({ kind, on: { 'tools/call': () => ({ content }) } }), LIMIT)
  await using host = await modernHttp.connect(gateway)
  expect((await callLog(host)).map(({ uri }) => uri)).toEqual([
    'a+file:///r',
    undefined,
    undefined,
    expect.stringMatching(/^gateway\+result:/),
  ])
})

describe.each(['legacy http', 'modern http'] as const)('a %s server', (kind) => {
  test.each([legacyHttp, modernHttp])(
    'a result that passes on while it comes is limited, too, for a host on $name',
    async ({ connect }) => {
      await using gateway = await start(logs({ kind }), LIMIT)
      const content = [{ type: 'text', text: LINES.repeat(2_000) }]
      gateway.fake('a').intercept = (_request, response, body) => {
        if (!body.includes('"tools/call"')) return false
        const { id } = JSON.parse(body) as Message
        const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', content } })
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) }).end(answer)
        return true
      }
      await using host = await connect(gateway)
      const [head] = await callLog(host)
      expect(Buffer.byteLength(head!.text ?? '')).toBeLessThanOrEqual(100)
      expect((await host.call('tools/call', { name: 'a__other' }))['content']).toEqual(content)
    },
  )
})

describe('a tool whose results are limited is no task of the host', () => {
  const limit = { result: { max_tokens: 25 } }
  const must = { tools: { must: limit, may: limit } }

  test('it is not listed as one, and refused as one; what the server insists on is followed', async () => {
    const spec = taskServer('legacy http', {
      'tasks/get': () => ({ ...TASK, status: 'completed' }),
      'tasks/result': () => ({ content: [{ type: 'text', text: LINES }] }),
    })
    await using gateway = await start(spec, must)
    await using host = await legacyHttp.connect(gateway)
    const { tools } = await host.call('tools/list')
    for (const tool of tools as JsonMap[])
      if (/m(ay|ust)$/.test(String(tool['name']))) expect(tool).not.toHaveProperty('execution')
    await expect(host.call('tools/call', { name: 'a__may', task: {} })).rejects.toMatchObject({ code: -32601 })
    const { content } = await host.call('tools/call', { name: 'a__must' })
    expect((content as Block[]).map(({ type }) => type)).toEqual(['text', 'text', 'resource_link'])
  })

  test('a modern server is not told that the host could follow it', async () => {
    const spec = fake.of({
      kind: 'modern http',
      tools: ['log'],
      on: {
        'tools/call': ({ params }) => {
          const { extensions } = (params['_meta'] as JsonMap)[KEY.capabilities] as { extensions?: JsonMap }
          if (extensions?.[TASKS] === undefined)
            throw new RpcError({
              code: -32021,
              message: 'tasks only',
              data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
            })
          return {
            resultType: 'task',
            taskId: '1',
            status: 'working',
            createdAt: 'c',
            lastUpdatedAt: 'u',
            ttlMs: 1_000,
            pollIntervalMs: 20,
          }
        },
        'tasks/get': () => ({
          taskId: '1',
          status: 'completed',
          createdAt: 'c',
          lastUpdatedAt: 'u',
          ttlMs: 1_000,
          result: { content: [{ type: 'text', text: LINES }] },
        }),
      },
    })
    await using gateway = await start(spec, LIMIT)
    await using host = await modernHttp.connect(gateway, { capabilities: { extensions: { [TASKS]: {} } } })
    expect((await callLog(host)).map(({ type }) => type)).toEqual(['text', 'text', 'resource_link'])
    const [first] = gateway.fake('a').all('tools/call')
    expect(describes(first!)[KEY.capabilities]).not.toHaveProperty(['extensions', TASKS])
  })
})

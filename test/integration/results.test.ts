/** Results as each host can read them: blocks, structured content and URIs, whatever else is edited in them (BRIDGING 3.3, 3.22, 4.4). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
const connect = (gateway: TestGateway, revision: string): Promise<Host> =>
  revision === '2026-07-28' ? modernHttp.connect(gateway) : legacyHttp.connect(gateway, { revision })
const toolsOf = async (host: Host): Promise<JsonMap[]> => (await host.call('tools/list'))['tools'] as JsonMap[]

const link = (uri: string): JsonMap => ({ type: 'resource_link', uri, name: 'r' })
const text = (words: string): JsonMap => ({ type: 'text', text: words })
const answering = (result: JsonMap, more: Partial<FakeSpec> = {}): FakeSpec =>
  fake.of({ tools: ['x'], on: { 'tools/call': () => result }, ...more })

describe.each([...LEGACY, '2026-07-28'])('for a host of %s', (revision) => {
  const isOld = revision < '2025-06-18'

  test('B107 B109 links keep their server and old hosts get no block they do not know, beside structured content', async () => {
    const said = { content: [link('m:1')], structuredContent: { a: 1 } }
    await using gateway = await startGateway({ servers: { a: answering(said), b: answering(said, { kind: 'modern http' }) } })
    await using host = await connect(gateway, revision)
    for (const key of ['a', 'b']) {
      const { content, structuredContent } = await host.call('tools/call', { name: `${key}__x` })
      expect(structuredContent).toEqual({ a: 1 })
      expect(content).toEqual(isOld ? [text(`r: ${key}+m:1`), text('{"a":1}')] : [link(`${key}+m:1`)])
    }
  })

  test('B107 B283 a schema of a legacy server and what belongs to it are the same to every host', async () => {
    const schemas = [
      { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } },
      { anyOf: [{ type: 'object' }] },
      {},
      { type: ['object'] },
      { type: 'object' },
      null,
    ]
    const tools = schemas.map((outputSchema, at) => ({ name: `t${at}`, inputSchema: { type: 'object' }, outputSchema }))
    const said = { content: [text('x')], structuredContent: { n: 1 } }
    await using gateway = await startGateway({ servers: { a: answering(said, { tools }) } })
    await using host = await connect(gateway, revision)
    expect((await toolsOf(host)).map(({ outputSchema }) => outputSchema ?? null)).toEqual(schemas)
    for (const { name } of tools) expect(await host.call('tools/call', { name: `a__${name}` })).toMatchObject(said)
  })

  test('B282 null is neither a schema nor structured content', async () => {
    const said = { content: [], structuredContent: null }
    const tools = [{ name: 'x', inputSchema: { type: 'object' }, outputSchema: null }]
    await using gateway = await startGateway({
      servers: { a: answering(said, { tools }), b: answering(said, { tools, kind: 'modern http' }) },
    })
    await using host = await connect(gateway, revision)
    for (const tool of await toolsOf(host)) expect(tool).not.toHaveProperty('outputSchema')
    for (const key of ['a', 'b']) expect(await host.call('tools/call', { name: `${key}__x` })).toMatchObject(said)
  })

  test('B108 B283 of a modern server a value is wrapped exactly where its schema is', async () => {
    const schemas = [{ anyOf: [{ type: 'object' }] }, { type: 'array' }, { type: 'object' }, undefined]
    const values = [{ n: 1 }, [1], { n: 1 }, [1]]
    const tools = schemas.map((outputSchema, at) => ({
      name: `t${at}`,
      inputSchema: { type: 'object' },
      ...(outputSchema !== undefined && { outputSchema }),
    }))
    const said = ({ params }: { params: JsonMap }): JsonMap => ({
      content: [text('x')],
      structuredContent: values[Number(String(params['name']).slice(1))],
    })
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools, on: { 'tools/call': said } }) },
    })
    await using host = await connect(gateway, revision)
    const wraps = revision === '2025-06-18' || revision === '2025-11-25'
    const listed = await toolsOf(host)
    for (const [at, schema] of schemas.entries()) {
      const isWrapped = wraps && at !== 2
      const wrapped = { type: 'object', properties: { result: schema }, required: ['result'] }
      expect(listed[at]!['outputSchema']).toEqual(isWrapped && schema !== undefined ? wrapped : schema)
      const { structuredContent } = await host.call('tools/call', { name: `a__t${at}` })
      expect(structuredContent).toEqual(isWrapped ? { result: values[at] } : values[at])
    }
  })
})

test('B161 a link that another server lists too leads back to the one that gave it', async () => {
  const uri = 'https://docs.example/page'
  const reading = (who: string): Partial<FakeSpec> => ({
    on: {
      'tools/call': () => ({ content: [link(uri), { type: 'resource', resource: { uri, text: 'x' } }] }),
      'resources/read': ({ params }) => ({ contents: [{ uri: params['uri'], text: who }] }),
    },
  })
  await using gateway = await startGateway({
    servers: {
      a: fake.of({ tools: ['x'], resources: [uri], ...reading('a') }),
      b: fake.of({ tools: ['x'], resources: [], ...reading('b') }),
    },
  })
  for (const { connect: open } of [legacyHttp, modernHttp]) {
    await using host = await open(gateway)
    for (const key of ['a', 'b']) {
      const { content } = await host.call('tools/call', { name: `${key}__x` })
      const [first, second] = content as [JsonMap, { resource: JsonMap }]
      expect(second.resource['uri']).toBe(first['uri'])
      expect(await host.call('resources/read', { uri: first['uri'] })).toMatchObject({
        contents: [{ uri: first['uri'], text: key }],
      })
    }
  }
})

test('B161 relative URIs are listed under the prefix, and read by what the server calls them', async () => {
  await using gateway = await startGateway({
    servers: {
      tf: fake.of({ resources: ['/terraform/style-guide'], templates: ['/terraform/providers/{name}'] }),
      b: fake.of({ resources: ['/terraform/style-guide'] }),
    },
  })
  await using host = await legacyHttp.connect(gateway)
  const { resources } = (await host.call('resources/list')) as { resources: JsonMap[] }
  expect(resources.map(({ uri }) => uri)).toEqual(['tf+:/terraform/style-guide', 'b+:/terraform/style-guide'])
  const { resourceTemplates } = (await host.call('resources/templates/list')) as { resourceTemplates: JsonMap[] }
  expect(resourceTemplates).toMatchObject([{ uriTemplate: 'tf+:/terraform/providers/{name}' }])
  for (const [uri, original] of [
    ['tf+:/terraform/style-guide', '/terraform/style-guide'],
    ['tf+:/terraform/providers/aws', '/terraform/providers/aws'],
  ]) {
    expect(await host.call('resources/read', { uri })).toMatchObject({ contents: [{ uri }] })
    expect(gateway.fake('tf').all('resources/read').at(-1)?.params).toMatchObject({ uri: original })
  }
  expect(gateway.fake('b').all('resources/read')).toEqual([])
})

test('B292 lists of a legacy server keep its order, and are private', async () => {
  const names = ['zeta', 'alpha', 'Mid']
  await using gateway = await startGateway({ servers: { a: fake.offering(...names) } })
  await using host = await modernHttp.connect(gateway)
  const list = await host.call('tools/list')
  expect((list['tools'] as JsonMap[]).map(({ name }) => name)).toEqual(names.map((name) => `a__${name}`))
  expect(list['cacheScope']).toBe('private')
})

/** Messages of servers that are nested deeper than any reader may recurse: each costs what it is about, and no more (T-24, T-29). */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { serverStatuses } from '../../../src/admin/state/status.ts'
import { everyFakeKind, fake } from '../../support/fake-downstream.ts'
import type { FakeSpec } from '../../support/fake-downstream.ts'
import { legacyHttp, modernHttp, toolNames } from '../../support/fake-host.ts'
import type { Turn } from '../../support/fakes/turn.ts'
import { startGateway } from '../../support/gateway.ts'

const arrays = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
const objects = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`
const DEEP: readonly (readonly [string, string])[] = [
  ['129 levels', objects(129)],
  ['1,000 levels', objects(1_000)],
  ['100,000 levels', `{"enum":${arrays(99_999)}}`],
]
const answering =
  (result: string) =>
  (turn: Turn): void =>
    turn.finish(`{"jsonrpc":"2.0","id":${JSON.stringify(turn.id)},"result":${result}}`)
/** A list with a deep entry between two healthy ones. */
const toolsWith = (member: string, deep: string): string => {
  const good = (name: string): string => `{"name":"${name}","inputSchema":{"type":"object"}}`
  const schema = member === 'inputSchema' ? '' : '"inputSchema":{"type":"object"},'
  return `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[${good('before')},{"name":"deep",${schema}"${member}":${deep}},${good('after')}]}`
}
const server = (kind: FakeSpec['kind'], on: FakeSpec['on']): FakeSpec => fake.of({ ...(kind && { kind }), tools: ['x'], on })

describe.each(everyFakeKind)('T-29 a tool of a %s server whose schema is nested too deep is left out alone', (kind) => {
  test.each(DEEP)('%s', async (_what, deep) => {
    const list = answering(toolsWith('inputSchema', deep))
    await using gateway = await startGateway({ servers: { a: server(kind, { 'tools/list': list }) } })
    await using host = await modernHttp.connect(gateway)
    expect(await toolNames(host)).toEqual(['a__before', 'a__after'])
    expect(await host.call('tools/call', { name: 'a__after', arguments: {} })).toHaveProperty('content')
    expect(JSON.stringify(serverStatuses(gateway.running))).toContain('inputSchema exceeds limits.max_schema_depth (128 levels)')
    expect(gateway.running.limits.all).toMatchObject([{ option: 'limits.max_schema_depth', server: 'a' }])
  })
})

test.each(['outputSchema', 'annotations', '_meta', 'anything'])('T-29 a deep %s costs its tool, too', async (member) => {
  const list = answering(toolsWith(member, `{"a":${arrays(50_000)}}`))
  await using gateway = await startGateway({ servers: { a: server('legacy stdio', { 'tools/list': list }) } })
  await using host = await legacyHttp.connect(gateway)
  expect(await toolNames(host)).toEqual(['a__before', 'a__after'])
  expect(JSON.stringify(serverStatuses(gateway.running))).toContain(`${member} exceeds limits.max_schema_depth`)
})

test('T-29 exactly 128 levels are served as they are', async () => {
  const schema = objects(128).replace('{', '{"type":"object",')
  const list = answering(toolsWith('inputSchema', schema))
  await using gateway = await startGateway({ servers: { a: server('legacy stdio', { 'tools/list': list }) } })
  await using host = await modernHttp.connect(gateway)
  expect(await host.begin('tools/list').raw).toContain(`"inputSchema":${schema}`)
})

test.each(everyFakeKind)('T-24 a result of a %s server passes whatever its depth', async (kind) => {
  const deep = arrays(100_000)
  const call = answering(
    `{"resultType":"complete","content":[{"type":"text","text":"x","_meta":{"a":${deep}}}],"structuredContent":{"a":${deep}}}`,
  )
  await using gateway = await startGateway({ servers: { a: server(kind, { 'tools/call': call }) } })
  await using host = await modernHttp.connect(gateway)
  expect(await host.begin('tools/call', { name: 'a__x', arguments: {} }).raw).toContain(`"structuredContent":{"a":${deep}}`)
})

test('T-24 T-29 8 million levels in one schema cost that tool', async () => {
  const list = answering(toolsWith('inputSchema', arrays(7_900_000)))
  await using gateway = await startGateway({ servers: { a: server('legacy stdio', { 'tools/list': list }) } })
  await using host = await legacyHttp.connect(gateway)
  expect(await toolNames(host)).toEqual(['a__before', 'a__after'])
})

describe('T-24 members that are read', () => {
  test.each(everyFakeKind.filter((kind) => kind.startsWith('legacy')))(
    'deep capabilities of a %s server fail its handshake alone',
    async (kind) => {
      const hello = answering(
        `{"protocolVersion":"2025-06-18","serverInfo":{"name":"f","version":"1"},"capabilities":{"tools":{},"experimental":{"a":${arrays(100_000)}}}}`,
      )
      await using gateway = await startGateway({
        servers: { a: server(kind, { initialize: hello }), b: fake.offering('y') },
        early: true,
      })
      await using host = await legacyHttp.connect(gateway)
      await gateway.log.until(({ text, facts }) => /levels/.test(`${text} ${String(facts['error'])}`))
      await gateway.fake('b').until('tools/list')
      expect(await host.call('tools/call', { name: 'b__y', arguments: {} })).toHaveProperty('content')
    },
  )

  test.each(['code', 'data'])('a deep %s of an error fails that call alone', async (member) => {
    const error = { code: '-32000', data: '{}', [member]: `{"a":${arrays(100_000)}}` }
    const call = (turn: Turn): void =>
      turn.finish(
        `{"jsonrpc":"2.0","id":${JSON.stringify(turn.id)},"error":{"code":${error.code},"message":"no","data":${error.data}}}`,
      )
    await using gateway = await startGateway({ servers: { a: server('modern http', { 'tools/call': call }) } })
    await using host = await modernHttp.connect(gateway)
    const { raw } = host.begin('tools/call', { name: 'a__x', arguments: {} })
    expect(Buffer.byteLength(await raw)).toBeGreaterThan(0)
    gateway.fake('a').on('tools/call', () => ({ content: [] }))
    expect(await host.call('tools/call', { name: 'a__x', arguments: {} })).toHaveProperty('content')
  })
})

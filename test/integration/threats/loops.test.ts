/** Gateways that lead back to themselves: refused with a reason, before anything grows (T-35). */
import { describe, expect, test } from 'vitest'
import { DEFAULT_SERVER } from '../../../src/downstream/options.ts'
import type { ServerOptions } from '../../../src/downstream/options.ts'
import { commandLine, message } from '../../support/cli.ts'
import { fake } from '../../support/fake-downstream.ts'
import type { Received } from '../../support/fakes/turn.ts'
import { metaOf } from '../../support/fakes/messages.ts'
import { everyTransport, modernHttp } from '../../support/fake-host.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { PROGRAM } from '../../support/program.ts'

const HOPS = 'dev.trunkline/hops'
const GATEWAYS = 'dev.trunkline/gateways'

/** An entry of `servers` that is another gateway, or this very one. */
const leadingTo = (key: string, { url }: TestGateway, more: Partial<ServerOptions> = {}): ServerOptions => ({
  ...DEFAULT_SERVER,
  key,
  prefix: key,
  displayName: key,
  place: `test:${key}`,
  launch: undefined,
  url,
  ...more,
})

const add = async ({ running }: TestGateway, ...servers: ServerOptions[]): Promise<void> => {
  const { configuration } = running
  await running.apply({ ...configuration, servers: [...configuration.servers, ...servers] }, new Set())
}

const stateOf = ({ running }: TestGateway, key: string) => running.fleet.get(key)?.health$.value

/** Resolves once the server of that key has been given up. */
const refused = async (gateway: TestGateway, key: string): Promise<string> => {
  const { text } = await gateway.log.until(({ level, facts }) => level === 'error' && facts['server'] === key)
  expect(stateOf(gateway, key)).toMatchObject({ state: 'failed', reason: text })
  return text
}

const BACK = 'it leads back to this gateway: take it out of "servers" here, or this gateway out of its own'
const own = fake.of({ kind: 'modern http', tools: ['t'] })
const EVERY_WAY: readonly (readonly [string, (gateway: TestGateway) => Partial<ServerOptions>])[] = [
  ['modern', () => ({})],
  ['legacy Streamable HTTP', () => ({ era: 'legacy' })],
  ['HTTP+SSE', ({ url }) => ({ url: new URL('/sse', url), transport: 'sse' })],
]

describe.each(EVERY_WAY)('T-35 over %s', (_name, how) => {
  test('a gateway that lists itself refuses that server by name and remedy, and serves the others', async () => {
    await using a = await startGateway({ servers: { own } })
    await add(a, leadingTo('self', a, how(a)))
    expect(await refused(a, 'self')).toBe(BACK)
    await using host = await modernHttp.connect(a)
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'own__t' }] })
    expect(await host.call('tools/call', { name: 'own__t', arguments: {} })).toMatchObject({ content: [{ text: '{}' }] })
    expect(await host.call('tools/call', { name: 'self__t' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('the way to self leads in a circle of gateways') as string }],
    })
  })

  test('two gateways that list each other: the way that closes the circle is refused, and no list grows', async () => {
    await using a = await startGateway({ servers: { own } })
    await using b = await startGateway({ servers: { own } })
    await add(a, leadingTo('b', b, how(b)))
    await a.log.until(({ text, facts }) => text === 'server is ready' && facts['server'] === 'b')
    await add(b, leadingTo('a', a, how(a)))
    expect(await refused(b, 'a')).toBe(BACK)
    await using host = await modernHttp.connect(a)
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'own__t' }, { name: 'b__own__t' }] })
    expect(await host.call('tools/call', { name: 'b__own__t', arguments: {} })).toMatchObject({ content: [{ text: '{}' }] })
  })

  test('two that connect to each other in the same moment find the circle when they read each other again', async () => {
    await using a = await startGateway({ servers: { own } })
    await using b = await startGateway({ servers: { own } })
    await Promise.all([add(a, leadingTo('b', b, how(b))), add(b, leadingTo('a', a, how(a)))])
    await Promise.race([refused(a, 'b'), refused(b, 'a')])
    const names = (gateway: TestGateway): number => gateway.running.gateway.feed.catalog.lists.tools.length
    expect(Math.max(names(a), names(b))).toBeLessThanOrEqual(3)
  })
})

test('T-35 a circle over a third gateway is refused by the one that closes it', async () => {
  await using a = await startGateway({ servers: { own } })
  await using b = await startGateway({ servers: { own } })
  await using c = await startGateway({ servers: { own } })
  const ready = (gateway: TestGateway, server: string) =>
    gateway.log.until(({ text, facts }) => text === 'server is ready' && facts['server'] === server)
  await add(b, leadingTo('c', c))
  await ready(b, 'c')
  await add(a, leadingTo('b', b))
  await ready(a, 'b')
  await add(c, leadingTo('a', a))
  expect(await refused(c, 'a')).toBe(BACK)
})

test('T-35 a gateway that started itself anew, process behind process, ends after three', async () => {
  await using cli = await commandLine()
  const args = [PROGRAM, 'stdio', '--inline', '-c', cli.path('trunkline.yaml'), '--state', cli.path('own-state')]
  const self = JSON.stringify({ command: process.execPath, args, env: { inherit: ['PATH', 'HOME', 'XDG_RUNTIME_DIR'] } })
  await cli.write('trunkline.yaml', `servers:\n  self: ${self}\n  a: ${cli.fake('good', 'log')}\n`)
  const serving = cli.spawn(['stdio', '--inline', '-c', 'trunkline.yaml'])
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const heard = new Promise<void>((resolve) => {
    let said = ''
    serving.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('"id":1,') && said.includes('self__self__a__echo')) resolve()
      else if (said.includes('list_changed')) serving.child.stdin?.write(message(1, 'tools/list', { _meta: meta }))
    })
  })
  serving.child.stdin?.write(message(0, 'subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: meta }))
  await heard
  // The fourth is told that three stand before it, and starts nothing.
  expect(cli.log('log').filter((line) => line.startsWith('start'))).toHaveLength(3)
  serving.child.stdin?.end()
  expect(await serving.ended).toBe(0)
})

test.each(everyTransport)(
  'T-35 over $name a call says to gateways how many it has passed, and to nobody else',
  async ({ connect }) => {
    const gatewayLike = fake.of({
      kind: 'modern http',
      tools: ['t'],
      on: {
        'server/discover': () => ({
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
          ttlMs: 0,
          cacheScope: 'private',
          _meta: { [GATEWAYS]: ['another', 'one more'] },
        }),
      },
    })
    await using gateway = await startGateway({ servers: { other: gatewayLike, own } })
    await using host = await connect(gateway)
    const heard = (key: string): Promise<Received> => gateway.fake(key).until('tools/call')
    const call = async (key: string, hops: number | undefined): Promise<unknown> => {
      gateway.fake(key).forget()
      await host.call('tools/call', { name: `${key}__t` }, hops === undefined ? {} : { meta: { [HOPS]: hops } })
      return metaOf((await heard(key)).message)[HOPS]
    }
    expect([await call('other', undefined), await call('other', 1), await call('other', 2), await call('other', -7)]).toEqual([
      1, 2, 3, 1,
    ])
    expect([await call('own', undefined), await call('own', 2)]).toEqual([undefined, undefined])
    gateway.fake('other').forget()
    expect(await host.call('tools/call', { name: 'other__t' }, { meta: { [HOPS]: 3 } })).toMatchObject({
      isError: true,
      content: [{ text: 'the way to OTHER leads in a circle of gateways' }],
      _meta: { 'dev.trunkline/gateway': { kind: 'loop', executed: 'no', downstream: 'other' } },
    })
    expect(gateway.fake('other').all('tools/call')).toEqual([])
    expect(gateway.running.gateway.gateways.slice(1)).toEqual(['another', 'one more'])
  },
)

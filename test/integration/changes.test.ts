/** Changes of lists and resources, on their way to every host that is concerned (BRIDGING 3.7, 3.8; 8.7). */
import { describe, expect, test, vi } from 'vitest'
import { everyFakeKind, fake, FakeDownstream } from '../support/fake-downstream.ts'
import type { FakeKind, Handle } from '../support/fake-downstream.ts'
import {
  everyLegacyTransport,
  everyTransport,
  legacyHttp,
  legacyPipe,
  modernHttp,
  modernPipe,
  toolNames,
} from '../support/fake-host.ts'
import type { Host, Pending } from '../support/fake-host.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import { KEY, metaOf } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { serverOptions, startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const addTool = (downstream: FakeDownstream, name: string): void => {
  downstream.offers.tools.push({ name, inputSchema: { type: 'object' } })
  downstream.changed('tools')
}
const ALL = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
/** What reaches a host that belongs to no call: of modern hosts, what comes on a `listen`. */
const listen = async (
  host: Host,
  notifications: JsonMap = ALL,
): Promise<{ pending?: Pending; heard: Host['heard']; acknowledged?: unknown }> => {
  if (host.era === 'legacy') return { heard: host.heard }
  const pending = host.begin('subscriptions/listen', { notifications })
  const heard = pending.messages.entries.length > 0 || host.heard.entries.length > 0 ? host.heard : pending.messages
  const on = await Promise.race([
    pending.messages.until(isAcknowledged).then(() => pending.messages),
    host.heard.until(isAcknowledged).then(() => host.heard),
  ])
  const { params } = await (on ?? heard).until(isAcknowledged)
  return { pending, heard: on ?? heard, acknowledged: params?.['notifications'] }
}
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const isAcknowledged = ({ method }: Message): boolean => method === ACKNOWLEDGED
const isUpdated = ({ method }: Message): boolean => method === 'notifications/resources/updated'
const isWatching = ({ notifications }: JsonMap): boolean => 'resourceSubscriptions' in (notifications as JsonMap)
const isToolsChanged = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'

describe.each(everyTransport)('over $name', ({ connect }) => {
  test.each(everyFakeKind)('B128 a change at a %s server is announced once the new list is in force', async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['one'] }) } })
    await using host = await connect(gateway)
    const { heard } = await listen(host)
    addTool(gateway.fake('a'), 'two')
    await heard.until(isToolsChanged)
    expect(await toolNames(host)).toEqual(['a__one', 'a__two'])
  })
  test('B128 nothing is announced when nothing changed for the host; prompts are not tools', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ tools: ['one'], prompts: ['p'] }) } })
    await using host = await connect(gateway)
    const { heard } = await listen(host)
    gateway.fake('a').changed('tools')
    await gateway.fake('a').until('tools/list')
    gateway.fake('a').offers.prompts.push({ name: 'q' })
    gateway.fake('a').changed('prompts')
    await heard.until(({ method }) => method === 'notifications/prompts/list_changed')
    expect(heard.entries.filter(({ method }) => method?.endsWith('list_changed'))).toHaveLength(1)
  })
  test('B129 a burst of announcements is read and announced once', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('one') } })
    await using host = await connect(gateway)
    const { heard } = await listen(host)
    for (let n = 0; n < 50; n++) addTool(gateway.fake('a'), `t${n}`)
    await heard.until(isToolsChanged)
    const reads = gateway.fake('a').all('tools/list').length
    expect(reads).toBeLessThanOrEqual(2)
    addTool(gateway.fake('a'), 'last')
    await heard.when(() => (heard.entries.filter(isToolsChanged).length >= 2 ? true : undefined))
    expect(heard.entries.filter(isToolsChanged)).toHaveLength(2)
  })
  test('B131 B132 B168 a subscribed resource: the server is told once, updates come under the exposed URI', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r', 'file:///s'] }) } })
    await using host = await connect(gateway)
    const uri = 'a+file:///r'
    const { heard } = await listen(host, { resourceSubscriptions: [uri] })
    if (host.era === 'legacy') await host.call('resources/subscribe', { uri })
    await gateway.fake('a').until('resources/subscribe')
    gateway.fake('a').updated('file:///r')
    const update = await heard.until(({ method }) => method === 'notifications/resources/updated')
    expect(update.params?.['uri']).toBe(uri)
    expect(
      gateway
        .fake('a')
        .all('resources/subscribe')
        .map(({ params }) => params['uri']),
    ).toEqual(['file:///r'])
  })
})

describe('legacy hosts', () => {
  test('3.7 a change while no stream is open waits, one of a kind, until one is', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('one') } })
    await using host = await connectHttp(gateway, { deaf: true })
    await using other = await legacyPipe.connect(gateway)
    for (const name of ['two', 'three']) {
      addTool(gateway.fake('a'), name)
      await other.heard.when(() =>
        other.heard.entries.filter(isToolsChanged).length === (name === 'two' ? 1 : 2) ? true : undefined,
      )
    }
    await host.listen()
    await host.heard.until(isToolsChanged)
    await host.call('ping')
    expect(host.heard.entries.filter(isToolsChanged)).toHaveLength(1)
  })
  test.each([
    ['/mcp', 'a+'],
    ['/servers/a/mcp', ''],
  ])('3.8 at %s an update while no stream is open waits, one of a resource, until one is', async (path, prefix) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r', 'file:///s', 'file:///t'] }) } })
    await using host = await connectHttp(gateway, { deaf: true, path })
    await using other = await legacyPipe.connect(gateway)
    for (const name of ['r', 's', 't']) {
      await host.call('resources/subscribe', { uri: `${prefix}file:///${name}` })
      await other.call('resources/subscribe', { uri: `a+file:///${name}` })
    }
    for (const name of ['r', 't', 'r', 's']) gateway.fake('a').updated(`file:///${name}`)
    await other.heard.until(({ params }) => params?.['uri'] === 'a+file:///s')
    await host.call('resources/unsubscribe', { uri: `${prefix}file:///t` })
    await host.listen()
    await host.heard.until(({ params }) => params?.['uri'] === `${prefix}file:///s`)
    const updates = host.heard.entries.filter(isUpdated)
    expect(updates.map(({ params }) => params)).toEqual([{ uri: `${prefix}file:///r` }, { uri: `${prefix}file:///s` }])
  })
  test('B132 B168 one resource under its exposed and its original URI: each gets updates, and one is left without the other', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r', 'file:///s'] }) } })
    await using host = await legacyHttp.connect(gateway)
    const [exposed, bare, marker] = ['a+file:///r', 'file:///r', 'a+file:///s']
    const updatesAfter = async (n: number): Promise<unknown[]> => {
      gateway.fake('a').updated('file:///r')
      gateway.fake('a').updated('file:///s')
      const isMarker = ({ params }: Message): boolean => params?.['uri'] === marker
      await host.heard.when(() => (host.heard.entries.filter(isMarker).length === n ? true : undefined))
      return host.heard.entries.filter(isUpdated).map(({ params }) => params?.['uri'])
    }
    for (const uri of [exposed, bare, marker]) await host.call('resources/subscribe', { uri })
    expect(await updatesAfter(1)).toEqual([exposed, bare, marker])
    await host.call('resources/unsubscribe', { uri: bare })
    expect((await updatesAfter(2)).slice(3)).toEqual([exposed, marker])
    expect(gateway.fake('a').all('resources/unsubscribe')).toEqual([])
    await host.call('resources/unsubscribe', { uri: exposed })
    await gateway.fake('a').until('resources/unsubscribe')
    expect((await updatesAfter(3)).slice(5)).toEqual([marker])
  })
  test.each([{}, { 'vendor.example/z': 1 }])(
    'B291 an update of a modern server reaches the legacy host of a pipe at a bridge without the id of our stream, _meta %j',
    async (more) => {
      await using gateway = await startGateway({
        servers: { a: fake.of({ kind: 'modern stdio', resources: ['file:///r'] }) },
        pipe: { server: 'a' },
      })
      await using host = await legacyPipe.connect(gateway)
      await host.call('resources/subscribe', { uri: 'file:///r' })
      const stream = gateway.fake('a').listens.find(({ params }) => isWatching(params))
      const _meta = { [KEY.subscriptionId]: stream?.id, ...more }
      stream?.notify('notifications/resources/updated', { uri: 'file:///r', _meta })
      const { params } = await host.heard.until(isUpdated)
      expect(params).toEqual({ uri: 'file:///r', ...(Object.keys(more).length > 0 && { _meta: more }) })
    },
  )
  test('3.7 what a change says to a legacy host is the bare notification', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['one'] }) } })
    await using host = await legacyHttp.connect(gateway)
    addTool(gateway.fake('a'), 'two')
    expect(await host.heard.until(isToolsChanged)).toEqual({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
  })
  test.each(everyLegacyTransport)(
    '3.8 over $name subscribing twice counts once, unsubscribing what never was is fine',
    async ({ connect }) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r'] }) } })
      await using host = await connect(gateway)
      const uri = 'a+file:///r'
      expect(await host.call('resources/unsubscribe', { uri })).toEqual({})
      expect(await host.call('resources/subscribe', { uri })).toEqual({})
      expect(await host.call('resources/subscribe', { uri })).toEqual({})
      expect(gateway.fake('a').all('resources/subscribe')).toHaveLength(1)
      expect(await host.call('resources/unsubscribe', { uri })).toEqual({})
      await gateway.fake('a').until('resources/unsubscribe')
      expect(gateway.fake('a').all('resources/unsubscribe')).toHaveLength(1)
    },
  )
  test('B103 subscribing to what nobody owns is not found, to what its owner does not offer is not subscribable', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ resources: ['file:///r'], capabilities: { resources: {} } }) },
    })
    await using host = await legacyHttp.connect(gateway)
    gateway.fake('a').on('resources/subscribe', (turn) => turn.fail(-32601, 'Method not found'))
    await expect(host.call('resources/subscribe', { uri: 'nope:///x' })).rejects.toMatchObject({ code: -32002 })
    await expect(host.call('resources/subscribe', { uri: 'a+file:///r' })).rejects.toMatchObject({ code: -32602 })
    await using modern = await modernHttp.connect(gateway)
    const { acknowledged } = await listen(modern, { resourceSubscriptions: ['a+file:///r'] })
    expect(acknowledged).toEqual({ resourceSubscriptions: [] })
  })
  test.each(everyTransport)(
    'B287 over $name a subscription that a legacy server takes and does not declare is made',
    async ({ connect }) => {
      await using gateway = await startGateway({
        servers: { a: fake.of({ resources: ['file:///r'], capabilities: { resources: {} } }) },
      })
      await using host = await connect(gateway)
      const uri = 'a+file:///r'
      const { heard, acknowledged } = await listen(host, { resourceSubscriptions: [uri] })
      if (host.era === 'legacy') await host.call('resources/subscribe', { uri })
      else expect(acknowledged).toEqual({ resourceSubscriptions: [uri] })
      gateway.fake('a').updated('file:///r')
      expect((await heard.until(({ method }) => method === 'notifications/resources/updated')).params?.['uri']).toBe(uri)
    },
  )
  test('HL×DM: subscribe is answered once the server has acknowledged the URI, and refused if it left it out', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', resources: ['file:///r', 'file:///s'] }) },
    })
    await using host = await legacyHttp.connect(gateway)
    const uri = 'a+file:///r'
    expect(await host.call('resources/subscribe', { uri })).toEqual({})
    gateway.fake('a').updated('file:///r')
    const update = await host.heard.until(({ method }) => method === 'notifications/resources/updated')
    expect(update).toEqual({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
    gateway.fake('a').on('subscriptions/listen', (turn) =>
      turn.notify('notifications/subscriptions/acknowledged', {
        notifications: { resourceSubscriptions: ['file:///r'] },
        _meta: { [KEY.subscriptionId]: turn.id },
      }),
    )
    await expect(host.call('resources/subscribe', { uri: 'a+file:///s' })).rejects.toMatchObject({ code: -32602 })
  })
})

describe('counting', () => {
  test('B131 B132 many hosts: one subscription at the server; it ends with the last host, however that leaves', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r'] }) } })
    const uri = 'a+file:///r'
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacyPipe.connect(gateway)
    await using three = await modernHttp.connect(gateway)
    await one.call('resources/subscribe', { uri })
    await two.call('resources/subscribe', { uri })
    const { pending, heard } = await listen(three, { resourceSubscriptions: [uri] })
    gateway.fake('a').updated('file:///r')
    for (const journal of [one.heard, two.heard, heard])
      expect((await journal.until(({ method }) => method === 'notifications/resources/updated')).params?.['uri']).toBe(uri)
    expect(gateway.fake('a').all('resources/subscribe')).toHaveLength(1)
    pending?.cancel()
    await two.call('resources/unsubscribe', { uri })
    expect(gateway.fake('a').all('resources/unsubscribe')).toEqual([])
    await one.call('resources/unsubscribe', { uri })
    await gateway.fake('a').until('resources/unsubscribe')
  })
  test.each(['legacy http', 'modern http'] as const)(
    'B131 a %s server that a reload takes away and another brings back is told again what hosts watch',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, resources: ['file:///r'] }), b: {} } })
      const uri = 'a+file:///r'
      const a = gateway.fake('a')
      await using early = await legacyHttp.connect(gateway)
      await early.call('resources/subscribe', { uri })
      const { running } = gateway
      const { configuration } = running
      await running.apply({ ...configuration, servers: configuration.servers.filter(({ key }) => key !== 'a') }, new Set())
      await running.apply(configuration, new Set())
      await gateway.ready()
      await using late = await legacyHttp.connect(gateway)
      await late.call('resources/subscribe', { uri })
      await a.until(kind === 'legacy http' ? 'resources/subscribe' : 'subscriptions/listen')
      a.updated('file:///r')
      for (const { heard } of [late, early]) await heard.until(isUpdated)
    },
  )
  test('B131 a server is told to watch again only once it has stopped watching', async () => {
    const done: string[] = []
    const slow = (word: string, ms: number) => async (): Promise<JsonMap> => {
      await new Promise((resolve) => setTimeout(resolve, ms))
      done.push(word)
      return {}
    }
    const on = { 'resources/subscribe': slow('watches', 0), 'resources/unsubscribe': slow('left', 50) }
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r'], on }) } })
    await using host = await legacyHttp.connect(gateway)
    for (const method of ['subscribe', 'unsubscribe', 'subscribe']) await host.call(`resources/${method}`, { uri: 'a+file:///r' })
    expect(done).toEqual(['watches', 'left', 'watches'])
  })
  test('B131 hosts that begin to watch a modern server at the same moment all do, however it hurries', async () => {
    const uris = ['file:///1', 'file:///2', 'file:///3', 'file:///4']
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', resources: uris }) } })
    let listens = 0
    gateway.fake('a').on('subscriptions/listen', async (turn) => {
      const { notifications } = turn.params
      if (listens++ === 0) await new Promise((resolve) => setTimeout(resolve, 50))
      turn.notify('notifications/subscriptions/acknowledged', { notifications, _meta: { [KEY.subscriptionId]: turn.id } })
    })
    const hosts = await Promise.all(uris.map(() => legacyHttp.connect(gateway)))
    await Promise.all(hosts.map((host, at) => host.call('resources/subscribe', { uri: `a+${uris[at]}` })))
    const asked = gateway
      .fake('a')
      .all('subscriptions/listen')
      .flatMap(({ params }) => ((params['notifications'] as JsonMap)['resourceSubscriptions'] ?? []) as string[])
    expect(asked.toSorted()).toEqual(uris)
    for (const host of hosts) await host[Symbol.asyncDispose]()
  })
  test('B132 a session that ends takes its subscriptions along', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r'] }) } })
    await using host = await connectHttp(gateway)
    await host.call('resources/subscribe', { uri: 'a+file:///r' })
    const { send } = await import('../support/fakes/raw-http.ts')
    await send(gateway.url, { method: 'DELETE', headers: host.headers() })
    await gateway.fake('a').until('resources/unsubscribe')
    expect(gateway.fake('a').all('resources/subscribe')).toHaveLength(1)
  })
  test('B133 an update below a subscribed URI reaches its subscribers, and not those of another', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///dir', 'file:///dirty'] }) } })
    await using parent = await legacyHttp.connect(gateway)
    await using other = await legacyPipe.connect(gateway)
    await parent.call('resources/subscribe', { uri: 'a+file:///dir' })
    await other.call('resources/subscribe', { uri: 'a+file:///dirty' })
    gateway.fake('a').updated('file:///dir/x')
    const update = await parent.heard.until(({ method }) => method === 'notifications/resources/updated')
    expect(update.params?.['uri']).toBe('a+file:///dir/x')
    gateway.fake('a').updated('file:///dirty')
    await other.heard.until(({ method }) => method === 'notifications/resources/updated')
    expect(other.heard.entries.map(({ params }) => params?.['uri'])).toEqual(['a+file:///dirty'])
  })
})

describe.each([modernHttp, modernPipe])('subscriptions/listen over $name', ({ connect, name }) => {
  test.each(['L-1', 7, 0])('B121 B122 it is acknowledged first, and every message carries the id %j', async (id) => {
    await using gateway = await startGateway({ servers: { a: fake.offering('one') } })
    await using host = await connect(gateway)
    const pending = host.begin('subscriptions/listen', { notifications: { toolsListChanged: true } }, { id })
    const journal = name === modernPipe.name ? host.heard : pending.messages
    await journal.until(() => true)
    addTool(gateway.fake('a'), 'two')
    await journal.until(isToolsChanged)
    expect(journal.entries[0]!.method).toBe('notifications/subscriptions/acknowledged')
    for (const message of journal.entries) expect(metaOf(message)[KEY.subscriptionId]).toBe(id)
  })
  test('B123 only what was asked for is sent', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ tools: ['one'], prompts: ['p'] }) } })
    await using host = await connect(gateway)
    const { heard } = await listen(host, { promptsListChanged: true, toolsListChanged: false })
    expect(heard.entries[0]!.params?.['notifications']).toEqual({ promptsListChanged: true })
    await using other = await legacyHttp.connect(gateway)
    addTool(gateway.fake('a'), 'two')
    await other.heard.until(isToolsChanged)
    gateway.fake('a').offers.prompts.push({ name: 'q' })
    gateway.fake('a').changed('prompts')
    await heard.until(({ method }) => method === 'notifications/prompts/list_changed')
    expect(heard.entries.map(({ method }) => method)).toEqual([
      'notifications/subscriptions/acknowledged',
      'notifications/prompts/list_changed',
    ])
  })
  test('B124 only URIs whose owner offers subscription are acknowledged', async () => {
    await using gateway = await startGateway({
      servers: {
        a: fake.of({ resources: ['file:///yes'] }),
        b: fake.of({
          resources: ['file:///no'],
          capabilities: { resources: {} },
          on: { 'resources/subscribe': (turn) => turn.fail(-32601, 'Method not found') },
        }),
        c: fake.of({ kind: 'modern http', resources: ['file:///neither'], capabilities: { resources: {} } }),
      },
    })
    await using host = await connect(gateway)
    const uris = ['a+file:///yes', 'b+file:///no', 'c+file:///neither', 'nope:///x']
    const { heard } = await listen(host, { toolsListChanged: true, resourceSubscriptions: uris })
    expect(heard.entries[0]!.params?.['notifications']).toEqual({
      toolsListChanged: true,
      resourceSubscriptions: ['a+file:///yes'],
    })
  })
  test('B132 a stream that its host ends is no longer notified', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('one') } })
    await using host = await connect(gateway)
    const { watchers } = gateway.running.gateway.feed
    const { pending } = await listen(host)
    expect(watchers.some(() => true)).toBe(true)
    pending!.cancel()
    await vi.waitFor(() => expect(watchers.some(() => true)).toBe(false))
  })
  test('B124 a server that does not answer in time counts where it declares subscriptions, and nowhere else', async () => {
    const silent = { 'resources/subscribe': fake.never }
    await using gateway = await startGateway({
      servers: {
        a: fake.of({ resources: ['file:///yes'], on: silent }),
        b: fake.of({ resources: ['file:///no'], capabilities: { resources: {} }, on: silent }),
      },
    })
    await using host = await connect(gateway)
    const { heard } = await listen(host, { resourceSubscriptions: ['a+file:///yes', 'b+file:///no'] })
    expect(heard.entries[0]!.params?.['notifications']).toEqual({ resourceSubscriptions: ['a+file:///yes'] })
  })
  test('B011 B125 B126 a listen that the gateway ends gets its tagged empty result; on a pipe also the cancellation', async () => {
    const gateway = await startGateway({ servers: { a: fake.offering('one') } })
    await using host = await connect(gateway)
    const pending = host.begin('subscriptions/listen', { notifications: ALL }, { id: 'L' })
    const journal = name === modernPipe.name ? host.heard : pending.messages
    await journal.until(isAcknowledged)
    await gateway[Symbol.asyncDispose]()
    const { id, result } = await pending.response
    expect([id, result?.['resultType'], metaOf({ result })[KEY.subscriptionId]]).toEqual(['L', 'complete', 'L'])
    expect(metaOf({ result })[KEY.serverInfo]).toMatchObject({ name: 'trunkline' })
    expect(Object.keys(result ?? {}).toSorted()).toEqual(['_meta', 'resultType'])
    if (name === modernPipe.name)
      await host.heard.until(({ method, params }) => method === 'notifications/cancelled' && params?.['requestId'] === 'L')
  })
  test('B282 a member of the filter that is null asks for nothing', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r'] }) } })
    await using host = await connect(gateway)
    const { acknowledged } = await listen(host, { toolsListChanged: true, resourceSubscriptions: null, taskIds: null })
    expect(acknowledged).toEqual({ toolsListChanged: true })
  })
  test('a listen without a filter is answered -32602', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('one') } })
    await using host = await connect(gateway)
    await expect(host.call('subscriptions/listen', {})).rejects.toMatchObject({ code: -32602 })
  })
  test('B137 progress and log messages come with their call, and never on a listen', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('one') } })
    await using host = await connect(gateway)
    const { heard } = await listen(host)
    gateway.fake('a').on('tools/call', (turn) => {
      turn.notify('notifications/message', { level: 'error', data: 'x' })
      turn.progress(1)
      return { content: [] }
    })
    const call = host.begin('tools/call', { name: 'a__one' }, { meta: { [KEY.logLevel]: 'debug', progressToken: 'p' } })
    await call.response
    // On a pipe all come one after the other, and those of a listen say so.
    const { entries } = name === modernPipe.name ? host.heard : call.messages
    const [, ...later] = heard.entries
    expect(later).toEqual(name === modernPipe.name ? entries.slice(1) : [])
    const own = entries.filter(({ method }) => method !== ACKNOWLEDGED)
    expect(own.map(({ method }) => method)).toEqual(['notifications/message', 'notifications/progress'])
    for (const message of own) expect(metaOf(message)).not.toHaveProperty([KEY.subscriptionId])
  })
})

test('B257 listens on a pipe count as requests in flight, until they are cancelled', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('one') }, hostLimits: { maxInFlight: 2 } })
  await using host = await modernPipe.connect(gateway)
  const [first] = [host.begin('subscriptions/listen', { notifications: ALL }), await listen(host)]
  const refused = { code: -32603, message: expect.stringContaining('listen.limits.in_flight (2) reached') as unknown }
  await expect(host.call('subscriptions/listen', { notifications: ALL })).rejects.toMatchObject(refused)
  await expect(host.call('tools/list')).rejects.toMatchObject(refused)
  first.cancel()
  await host.call('tools/list')
})

describe.each(['modern http', 'modern stdio'] as const)('at a %s server', (kind) => {
  const resources = ['file:///1', 'file:///2', 'file:///3']
  const sets = (server: FakeDownstream): unknown[] =>
    server.listens.map(({ params }) => (params['notifications'] as JsonMap)['resourceSubscriptions']).filter(Boolean)
  const updates = (host: Host): unknown[] =>
    host.heard.entries.filter(({ method }) => method === 'notifications/resources/updated').map(({ params }) => params?.['uri'])

  test('a URI is on one listen; one that is not wanted any more is told of no longer', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, resources }) } })
    await using host = await legacyHttp.connect(gateway)
    const a = gateway.fake('a')
    await host.call('resources/subscribe', { uri: 'a+file:///1' })
    await host.call('resources/subscribe', { uri: 'a+file:///2' })
    expect(sets(a)).toEqual([['file:///1'], ['file:///2']])
    const ended = a.listens.find(({ params }) => JSON.stringify(params).includes('file:///1'))
    await host.call('resources/unsubscribe', { uri: 'a+file:///1' })
    if (kind === 'modern stdio') await a.until('notifications/cancelled')
    else await ended?.closed
    a.updated('file:///1')
    a.updated('file:///2')
    await host.heard.until(({ params }) => params?.['uri'] === 'a+file:///2')
    expect(updates(host)).toEqual(['a+file:///2'])
  })

  test('B284 a URI that the server refuses fails for its subscriber alone', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, resources }) } })
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacyHttp.connect(gateway)
    const a = gateway.fake('a')
    await one.call('resources/subscribe', { uri: 'a+file:///1' })
    a.on('subscriptions/listen', (turn) => {
      const asked = ((turn.params['notifications'] as JsonMap)['resourceSubscriptions'] ?? []) as string[]
      if (asked.includes('file:///2')) turn.fail(-32602, 'not this one')
      else turn.notify(ACKNOWLEDGED, { notifications: turn.params['notifications'], _meta: { [KEY.subscriptionId]: turn.id } })
    })
    const [refused, taken] = await Promise.allSettled([
      two.call('resources/subscribe', { uri: 'a+file:///2' }),
      two.call('resources/subscribe', { uri: 'a+file:///3' }),
    ])
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: -32602 } })
    expect(taken).toMatchObject({ status: 'fulfilled', value: {} })
    expect(sets(a)).toContainEqual(['file:///1'])
    a.updated('file:///1')
    await one.heard.until(({ params }) => params?.['uri'] === 'a+file:///1')
  })
})

describe('a legacy server that has a process or connection for each session', () => {
  const spec = { kind: 'legacy stdio' as const, tools: ['touch'], resources: ['file:///r', 'file:///s'] }
  const isUpdate = ({ method }: Message): boolean => method === 'notifications/resources/updated'
  const uri = 'a+file:///r'
  /** Tells of the resource in the process that is called. */
  const touching = (server: FakeDownstream): void => {
    server.on('tools/call', ({ connection, params }) => {
      connection.notify('notifications/resources/updated', { uri: (params['arguments'] as JsonMap)['uri'] })
      return { content: [] }
    })
  }
  const touch = (host: Host, what = 'file:///r'): Promise<JsonMap> =>
    host.call('tools/call', { name: 'a__touch', arguments: { uri: what } })

  const kinds = ['legacy stdio', 'legacy http', 'legacy sse'] as const
  const cells = everyTransport.flatMap((row) => kinds.map((kind) => ({ ...row, kind })))
  test.each(cells)('B284 what a call of a host over $name changes at a $kind server is told to it', async ({ connect, kind }) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ ...spec, kind }) } })
    touching(gateway.fake('a'))
    await using host = await connect(gateway)
    const { heard } = await listen(host, { resourceSubscriptions: [uri] })
    if (host.era === 'legacy') await host.call('resources/subscribe', { uri })
    await gateway.fake('a').until('resources/subscribe')
    await touch(host)
    expect((await heard.until(isUpdate)).params?.['uri']).toBe(uri)
  })

  test.each(kinds)(
    'B284 %s: the main link tells of what one session watches on its own, and no other session hears of it',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ ...spec, kind }) } })
      const a = gateway.fake('a')
      touching(a)
      await using one = await legacyHttp.connect(gateway)
      await using two = await legacyHttp.connect(gateway)
      await one.call('resources/subscribe', { uri })
      await two.call('resources/subscribe', { uri: 'a+file:///s' })
      const main = (await a.until('resources/subscribe')).connection
      await touch(one)
      await one.heard.until(isUpdate)
      main.notify('notifications/resources/updated', { uri: 'file:///r' })
      main.notify('notifications/resources/updated', { uri: 'file:///s' })
      await two.heard.until(({ params }) => params?.['uri'] === 'a+file:///s')
      expect(two.heard.entries.filter(isUpdate).map(({ params }) => params?.['uri'])).toEqual(['a+file:///s'])
      expect(one.heard.entries.filter(isUpdate)).toHaveLength(1)
    },
  )

  test.each(kinds)(
    'B284 %s: that watches for the session, before and after it is opened, and the main one tells it no more',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ ...spec, kind }) } })
      await using host = await legacyHttp.connect(gateway)
      const a = gateway.fake('a')
      touching(a)
      await host.call('resources/subscribe', { uri })
      await touch(host)
      await host.heard.until(isUpdate)
      await host.call('resources/subscribe', { uri: 'a+file:///s' })
      const watched = a
        .all('resources/subscribe')
        .map(({ connection, params }) => [a.connections.indexOf(connection), params['uri']])
      const own = a.connections.indexOf(a.all('tools/call')[0]!.connection)
      expect(watched.toSorted()).toEqual(
        [
          [0, 'file:///r'],
          [0, 'file:///s'],
          [own, 'file:///r'],
          [own, 'file:///s'],
        ].toSorted(),
      )
      host.heard.clear()
      a.connections[0]!.notify('notifications/resources/updated', { uri: 'file:///r' })
      a.connections[own]!.notify('notifications/resources/updated', { uri: 'file:///s' })
      await host.heard.until(isUpdate)
      expect(host.heard.entries.map(({ params }) => params?.['uri'])).toEqual(['a+file:///s'])
      await host.call('resources/unsubscribe', { uri })
      await a.journal.when(() => (a.all('resources/unsubscribe').length === 2 ? true : undefined))
    },
  )

  test.each([
    ['B284 at the merged endpoint nothing more is told of what was unsubscribed, under whatever URI', '/mcp', ['a+file:///s']],
    ['B277 at a bridge a host is told what its server tells on its link', '/servers/a/mcp', ['file:///r', 'file:///s']],
  ])('%s', async (_, path, told) => {
    await using gateway = await startGateway({ servers: { a: fake.of(spec) } })
    await using host = await legacyHttp.connect(gateway, { path })
    const a = gateway.fake('a')
    const [r, s] = spec.resources.map((one) => (path === '/mcp' ? `a+${one}` : one))
    for (const one of [r, s]) await host.call('resources/subscribe', { uri: one })
    await host.call('resources/unsubscribe', { uri: r })
    const { connection } = a.all('resources/subscribe')[0]!
    for (const changed of spec.resources) connection.notify('notifications/resources/updated', { uri: changed })
    await host.heard.until((message) => isUpdate(message) && message.params?.['uri'] === s)
    expect(host.heard.entries.filter(isUpdate).map(({ params }) => params?.['uri'])).toEqual(told)
  })

  test('B277 at a bridge what a host watches no more is not watched on its next link either', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ ...spec, kind: 'legacy http' }) } })
    await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
    const a = gateway.fake('a')
    for (const one of spec.resources) await host.call('resources/subscribe', { uri: one })
    await host.call('resources/unsubscribe', { uri: 'file:///r' })
    const { connection } = a.all('resources/unsubscribe')[0]!
    a.forget()
    connection.drop()
    await host.call('tools/call', { name: 'touch' })
    expect(a.all('resources/subscribe').map(({ params }) => params['uri'])).toEqual(['file:///s'])
  })
})

const restart = ({ running }: TestGateway): void => void running.fleet.restart('a', 0)
const drop = (gateway: TestGateway): void => gateway.fake('a').all('resources/subscribe')[0]?.connection.drop()
test.each<[FakeKind, string, (gateway: TestGateway) => void]>([
  ['legacy http', 'was started anew on purpose', restart],
  ['legacy stdio', 'was started anew on purpose', restart],
  ['legacy stdio', 'has lost the link of the host', drop],
  ['legacy sse', 'has lost the link of the host', drop],
])(
  'B042 B134 B277 at a bridge to a %s server that %s a watching host is told to read, and watches by that',
  async (kind, _, end) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, resources: ['file:///r', 'file:///s'] }) } })
    await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
    const a = gateway.fake('a')
    const uri = 'file:///r'
    await host.call('resources/subscribe', { uri })
    end(gateway)
    expect((await host.heard.until(isUpdated)).params).toEqual({ uri })
    host.heard.clear()
    a.forget()
    await host.call('resources/read', { uri })
    const [again, ...others] = a.all('resources/subscribe')
    expect([again?.params['uri'], others]).toEqual([uri, []])
    again?.connection.notify('notifications/resources/updated', { uri })
    await host.heard.until(isUpdated)
    await host.call('resources/unsubscribe', { uri })
    expect(a.all('resources/unsubscribe').map(({ connection }) => connection)).toEqual([again?.connection])
  },
)

test('B257 limits.subscriptions: over it a resource is not watched at a bridge either, and one that is left makes room', async () => {
  const [one, two, three] = ['file:///1', 'file:///2', 'file:///3'] as const
  await using gateway = await startGateway({ servers: { a: fake.of({}) }, gateway: { maxSubscriptions: 2 } })
  await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
  const send = (verb: string, uri: string): Promise<JsonMap> => host.call(`resources/${verb}`, { uri })
  for (const uri of [one, two, one]) await send('subscribe', uri)
  const refusal = { code: -32603, message: 'gateway is busy: limits.subscriptions (2) reached' }
  await expect(send('subscribe', three)).rejects.toMatchObject(refusal)
  await send('unsubscribe', one)
  await send('subscribe', three)
  const asked = gateway.fake('a').all('resources/subscribe')
  expect(asked.map(({ params }) => params['uri'])).toEqual([one, two, one, three])
})

test('B286 a call does not wait for the answer to a subscription on its link, which the server owes', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ tools: ['x'], resources: ['file:///r'] }) } })
  await using host = await legacyHttp.connect(gateway)
  const a = gateway.fake('a')
  await host.call('resources/subscribe', { uri: 'a+file:///r' })
  a.on('resources/subscribe', fake.never)
  expect(await host.call('tools/call', { name: 'a__x' })).not.toHaveProperty('isError')
  expect(a.all('resources/subscribe')).toHaveLength(2)
})

test.each([legacyHttp, modernHttp])(
  'B128 a server that a reload adds to the only one without prefix is announced to a host over $name that sends nothing',
  async ({ connect }) => {
    await using other = await FakeDownstream.start(fake.offering('two'))
    await using gateway = await startGateway({ servers: { a: fake.offering('one') }, gateway: { prefix: 'never' } })
    await using host = await connect(gateway)
    const { heard } = await listen(host)
    const { configuration } = gateway.running
    const servers = [...configuration.servers, serverOptions('b', other)]
    await gateway.running.apply({ ...configuration, servers }, new Set())
    await heard.until(isToolsChanged)
    expect(await toolNames(host)).toEqual(['one', 'two'])
  },
)

test('B257 limits.subscriptions: over it a resource is not watched, and the text names the option', async () => {
  const uris = ['file:///1', 'file:///2', 'file:///3']
  await using gateway = await startGateway({ servers: { a: fake.of({ resources: uris }) }, gateway: { maxSubscriptions: 2 } })
  await using legacy = await legacyHttp.connect(gateway)
  await using modern = await modernHttp.connect(gateway)
  const [one, two, three] = uris.map((uri) => `a+${uri}`)
  const subscribe = (uri: string): Promise<JsonMap> => legacy.call('resources/subscribe', { uri })
  const refusal = { code: -32603, message: 'gateway is busy: limits.subscriptions (2) reached' }
  for (const uri of [one, two, one]) await subscribe(uri!)
  await expect(subscribe(three!)).rejects.toMatchObject(refusal)
  await legacy.call('resources/unsubscribe', { uri: one })
  await subscribe(three!)
  const listens = (resourceSubscriptions: string[]) =>
    modern.begin('subscriptions/listen', { notifications: { resourceSubscriptions } })
  expect((await listens([one!, two!, three!]).response).error).toMatchObject(refusal)
  const pending = listens([one!, two!, one!])
  expect((await pending.messages.until(isAcknowledged)).params?.['notifications']).toEqual({
    resourceSubscriptions: [one, two, one],
  })
})

test.each<[string, Handle]>([
  [
    'agrees to tell of nothing',
    (turn) => turn.notify(ACKNOWLEDGED, { notifications: {}, _meta: { [KEY.subscriptionId]: turn.id } }),
  ],
  ['refuses to tell', (turn) => turn.fail(-32601, 'no')],
])('3.7 B157 the lists of a modern server that declares changes and then %s are read from time to time', async (_, handle) => {
  const modern = fake.of({ kind: 'modern http', tools: ['one'], on: { 'subscriptions/listen': handle } })
  await using gateway = await startGateway({ servers: { a: modern }, gateway: { legacyPollMs: 50 } })
  await using host = await legacyHttp.connect(gateway)
  gateway.fake('a').offers.tools.push({ name: 'two', inputSchema: { type: 'object' } })
  await host.heard.until(isToolsChanged)
  expect(await toolNames(host)).toEqual(['a__one', 'a__two'])
})

test('3.7 one that tells of its changes is not asked for them', async () => {
  const telling = fake.of({ kind: 'modern stdio', tools: ['x'], prompts: ['p'] })
  const silent = fake.of({ kind: 'modern http', tools: ['y'], capabilities: { tools: {} } })
  await using gateway = await startGateway({ servers: { a: telling, b: silent }, gateway: { legacyPollMs: 20 } })
  await using host = await modernHttp.connect(gateway)
  // What one pipe carries arrives in order: behind the acknowledgement of a stream that stands.
  const complete = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } }
  do await host.call('completion/complete', complete)
  while (gateway.fake('a').listens.length === 0)
  await host.call('completion/complete', complete)
  for (const key of ['a', 'b']) gateway.fake(key).forget()
  await gateway.fake('b').journal.when(() => (gateway.fake('b').all('tools/list').length >= 10 ? true : undefined))
  expect(gateway.fake('a').all('tools/list')).toEqual([])
})

test.each(everyLegacyTransport)(
  'B128 a list request that waits for a first start is not overtaken by its list_changed, over $name',
  async ({ connect }) => {
    const released = Promise.withResolvers<void>()
    const tools = [{ name: 'one', inputSchema: { type: 'object' } }]
    await using a = await FakeDownstream.start(
      fake.of({ tools: ['one'], on: { 'tools/list': () => released.promise.then(() => ({ tools })) } }),
    )
    await using gateway = await startGateway({
      servers: {},
      fakes: new Map([['a', a]]),
      early: true,
      gateway: { listBudgetMs: 3_600_000 },
    })
    await using host = await connect(gateway)
    const { response } = host.begin('tools/list')
    await a.until('tools/list')
    // An answer to a later request: the gateway has begun to serve the list.
    await host.call('ping')
    released.resolve()
    expect(await response).toMatchObject({ result: { tools: [{ name: 'a__one' }] } })
    expect(host.heard.entries.filter(isToolsChanged)).toEqual([])
    tools.push({ name: 'two', inputSchema: { type: 'object' } })
    a.changed('tools')
    await host.heard.until(isToolsChanged)
    expect(await toolNames(host)).toEqual(['a__one', 'a__two'])
  },
)

/** Links that nobody needs are closed; whatever is still alive on one keeps it (BRIDGING 3.0 rule 2; B055). */
import { filter, firstValueFrom } from 'rxjs'
import { expect, test } from 'vitest'
import { serverStatuses } from '../../src/admin/state/status.ts'
import type { Downstream } from '../../src/downstream/downstream.ts'
import { EVERYTHING } from '../../src/rpc/call.ts'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import { legacyPipe, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { FakeConnection } from '../support/fakes/connection.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import { TASK, taskServer, TASKS } from './tasks/task-server.ts'

const KINDS = ['legacy http', 'legacy stdio'] as const
const ok = { content: [{ type: 'text', text: 'ok' }] }

/** What keeps a link alive: how it begins, and how it ends well; each on the link of a host that declares elicitation. */
const HOLDS: Readonly<Record<string, (host: Host, release: () => void) => Promise<() => Promise<unknown>>>> = {
  'a call': async (host, release) => {
    const pending = host.begin('tools/call', { name: 'a__plain', arguments: { waits: true } })
    return async () => {
      release()
      return (await pending.response).result
    }
  },
  'a parked call': async (host) => {
    const call = { name: 'a__plain', arguments: { asks: true } }
    const { inputRequests, requestState } = await host.call('tools/call', call)
    const inputResponses = Object.fromEntries(Object.keys(inputRequests as JsonMap).map((key) => [key, { action: 'decline' }]))
    return () => host.call('tools/call', { ...call, requestState, inputResponses })
  },
  'a task': async (host) => {
    const { taskId } = await host.call('tools/call', { name: 'a__must' })
    return () => host.call('tasks/get', { taskId })
  },
}

test.each(KINDS.flatMap((kind) => Object.keys(HOLDS).map((what) => [what, kind] as const)))(
  'B055 %s keeps its link to a %s server; the next to it, idle, is closed, and so is this one afterwards',
  async (what, kind) => {
    const waited = Promise.withResolvers<JsonMap>()
    let status = 'working'
    const spec = taskServer(kind, {
      'tools/call': async (turn) => {
        const { waits, asks } = (turn.params['arguments'] ?? {}) as JsonMap
        if (turn.params['task'] !== undefined) return { task: TASK }
        if (asks === true) await turn.ask('elicitation/create', { message: '?', requestedSchema: { type: 'object' } })
        return waits === true ? waited.promise : ok
      },
      'tasks/get': () => ({ ...TASK, status }),
      'tasks/result': () => ok,
    })
    await using gateway = await startGateway({ servers: { a: spec }, options: { a: { idleStopMs: 20 } } })
    await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: {}, extensions: { [TASKS]: {} } } })
    await using other = await modernHttp.connect(gateway)
    const linkOf = (declared: (given: JsonMap) => boolean): FakeConnection | undefined =>
      gateway
        .fake('a')
        .connections.slice(1)
        .find((connection) => declared(connection.declared ?? {}))
    const end = await HOLDS[what]?.(host, () => waited.resolve(ok))
    await gateway.fake('a').until('tools/call')
    await other.call('tools/call', { name: 'a__plain' })
    const [held, idle] = [
      linkOf(({ elicitation }) => elicitation !== undefined),
      linkOf(({ elicitation }) => elicitation === undefined),
    ]
    await idle?.closed
    expect(held?.isOpen).toBe(true)
    status = 'completed'
    expect(await end?.()).toMatchObject(what === 'a task' ? { status: 'completed' } : ok)
    await held?.closed
    await host.call('tools/call', { name: 'a__plain' })
    expect(gateway.fake('a').all('tools/call').at(-1)?.connection).not.toBe(held)
  },
)

test.each(KINDS)('B055 the link of a legacy session to a %s server stays as long as its session, used or not', async (kind) => {
  const spec = fake.of({ kind, tools: ['x'] })
  await using gateway = await startGateway({ servers: { a: spec }, options: { a: { idleStopMs: 20 } } })
  const used = (): FakeConnection | undefined => gateway.fake('a').all('tools/call').at(-1)?.connection
  let own: FakeConnection | undefined
  {
    await using host = await legacyPipe.connect(gateway)
    await host.call('tools/call', { name: 'a__x' })
    own = used()
    await using other = await modernHttp.connect(gateway)
    await other.call('tools/call', { name: 'a__x' })
    await used()?.closed
    await host.call('tools/call', { name: 'a__x' })
    expect([used() === own, own?.isOpen]).toEqual([true, true])
  }
  await own?.closed
})

test.each(KINDS)('B055 a subscription stays, and with it its link to a %s server', async (kind) => {
  const spec = fake.of({ kind, tools: ['x'], resources: ['file:///r'] })
  await using gateway = await startGateway({ servers: { a: spec }, options: { a: { idleStopMs: 20 } } })
  await using host = await modernHttp.connect(gateway)
  const uri = 'a+file:///r'
  const listening = host.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } })
  await listening.messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
  await gateway.fake('a').until('resources/subscribe')
  await host.call('tools/call', { name: 'a__x' })
  await gateway.fake('a').all('tools/call')[0]?.connection.closed
  gateway.fake('a').updated('file:///r')
  const { params } = await listening.messages.until(({ method }) => method === 'notifications/resources/updated')
  expect(params).toMatchObject({ uri })
  expect(gateway.fake('a').all('resources/subscribe')).toHaveLength(1)
  listening.cancel()
})

test.each(everyFakeKind)(
  'a lazy %s server that nothing uses is stopped, stays listed, and is started by its next call; one that is watched stays up',
  async (kind) => {
    const spec = fake.of({ kind, tools: ['x'], resources: ['file:///r'] })
    const lazy = { start: 'lazy', idleStopMs: 20 } as const
    await using gateway = await startGateway({
      servers: { a: spec, b: spec, c: spec },
      options: { a: lazy, b: lazy, c: { idleStopMs: 20 } },
    })
    await using host = await modernHttp.connect(gateway)
    const [a, b, c] = ['a', 'b', 'c'].map((key) => gateway.running.fleet.get(key)!) as [Downstream, Downstream, Downstream]
    const stopped = async (): Promise<void> => {
      await firstValueFrom(a.health$.pipe(filter(({ state }) => state === 'starting')))
      expect([a.link, a.linkCount, a.health$.value.failures]).toEqual([undefined, 0, 0])
      // It is not starting: hosts may keep lists, and a person reads why it is not up.
      expect(gateway.running.gateway.isStarting(EVERYTHING)).toBe(false)
      const { reason, stderr } = serverStatuses(gateway.running).find(({ key }) => key === 'a')!
      expect([reason, stderr]).toEqual(['its next use starts it (lifecycle.start: lazy)', []])
    }
    const listening = host.begin('subscriptions/listen', { notifications: { resourceSubscriptions: ['b+file:///r'] } })
    await listening.messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    const { link } = b
    for (let times = 0; times < 3; times++) {
      await stopped()
      expect((await host.call('tools/list'))['tools']).toHaveLength(3)
      expect(a.link).toBeUndefined()
      expect(await host.call('tools/call', { name: 'a__x' })).not.toHaveProperty('isError')
    }
    expect([b.link, c.health$.value.state]).toEqual([link, 'healthy'])
    expect(link).toBeDefined()
    listening.cancel()
  },
)

test('a lazy modern server is not stopped while a task may run that it began', async () => {
  const spec = fake.of({
    kind: 'modern stdio',
    tools: ['x'],
    capabilities: { tools: {}, extensions: { [TASKS]: {} } },
    on: {
      'tools/call': ({ params }) => (params['arguments'] === undefined ? ok : { resultType: 'task', ...TASK, ttlMs: 60_000 }),
    },
  })
  const lazy = { start: 'lazy', idleStopMs: 20 } as const
  await using gateway = await startGateway({ servers: { a: spec, b: spec }, options: { a: lazy, b: lazy } })
  await using host = await modernHttp.connect(gateway, { capabilities: { extensions: { [TASKS]: {} } } })
  const [a, b] = ['a', 'b'].map((key) => gateway.running.fleet.get(key)!) as [Downstream, Downstream]
  expect(await host.call('tools/call', { name: 'a__x', arguments: {} })).toHaveProperty('taskId')
  const { link } = a
  await host.call('tools/call', { name: 'b__x' })
  await firstValueFrom(b.health$.pipe(filter(({ state }) => state === 'starting')))
  expect(link).toBeDefined()
  expect(a.link).toBe(link)
})

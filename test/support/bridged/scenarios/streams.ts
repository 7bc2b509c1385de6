/** What is sent while requests are under way, and outside of them: progress, cancellation, log messages, changes, subscriptions. */
import type { JsonMap } from '../../fakes/messages.ts'
import { Refused } from '../peers.ts'
import type { ClientPeer } from '../peers.ts'
import { call, each, isLegacy, isModern, seenEnd, shown, text, tool, tools } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']
const LISTS = ['tools', 'prompts', 'resources'] as const
const ALL = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
}
const LEVEL = 'io.modelcontextprotocol/logLevel'

const method =
  (wanted: string) =>
  (notice: { method: string }): boolean =>
    notice.method === wanted
const plain = (notices: ClientPeer['notices']): unknown[] =>
  notices.entries.map(({ method: name, params }) => {
    const { _meta, ...rest } = params ?? {}
    const kept = Object.entries((_meta ?? {}) as JsonMap).filter(
      ([key]) => !/^(?:dev\.trunkline|io\.modelcontextprotocol)\//.test(key),
    )
    return { method: name, params: rest, ...(kept.length > 0 && { meta: Object.fromEntries(kept) }) }
  })
const offering = (server: Parameters<ReturnType<typeof tools>>[0]): void => {
  server.handle('tools/list', () => ({ tools: [tool('a')] }))
  server.handle('prompts/list', () => ({ prompts: [{ name: 'p' }] }))
  server.handle('resources/list', () => ({ resources: [{ uri: 'note://a', name: 'a' }] }))
  server.handle('resources/templates/list', () => ({ resourceTemplates: [] }))
  server.handle('resources/read', ({ params }) => ({ contents: [{ uri: params['uri'], text: 't' }] }))
}

export const streams: readonly Scenario[] = [
  {
    name: 'progress arrives in order with total, message and fractions, under the client’s token',
    server: {
      capabilities: { tools: {} },
      serve: tools({
        work: async (turn) => {
          for (const progress of [0, 0.5, 1, 41, 42])
            await turn.progress({ progress, total: 42, message: `at ${progress}`, 'x-more': [progress] })
          return text('done')
        },
        silent: () => text('done'),
      }),
    },
    play: async ({ client }) => {
      const seen: unknown[] = []
      const one = await client.request('tools/call', { name: 'work' }, { onprogress: (params) => seen.push(params) })
      return [
        seenEnd(one),
        seen,
        seenEnd(await client.request('tools/call', { name: 'silent' }, { onprogress: (params) => seen.push(params) })),
      ]
    },
  },
  {
    name: 'two concurrent calls get their own progress',
    server: {
      capabilities: { tools: {} },
      serve: tools({
        work: async (turn) => {
          const { n } = turn.params['arguments'] as { n: number }
          for (const step of [1, 2, 3]) await turn.progress({ progress: n * 10 + step })
          return text(String(n))
        },
      }),
    },
    play: async ({ client }) => {
      const run = async (n: number): Promise<unknown> => {
        const seen: unknown[] = []
        const end = await client.request(
          'tools/call',
          { name: 'work', arguments: { n } },
          { onprogress: (params) => seen.push(params) },
        )
        return [seenEnd(end), seen]
      }
      return Promise.all([run(1), run(2), run(3)])
    },
  },
  {
    name: 'a cancelled call stops at the server, with the client’s reason',
    server: {
      capabilities: { tools: {} },
      serve: (server, { notes }) =>
        tools({
          hang: async (turn) => {
            await turn.progress({ progress: 1 })
            notes.push('started')
            await new Promise<void>((resolve) => turn.signal.addEventListener('abort', () => resolve()))
            notes.push(['cancelled', server.era === 'legacy' ? String(turn.signal.reason) : ''])
            return text('too late')
          },
          after: () => text('still there'),
        })(server),
    },
    play: async (scene) => {
      const { client, notes } = scene
      const giveUp = new AbortController()
      const pending = client
        .request('tools/call', { name: 'hang' }, { signal: giveUp.signal, onprogress: () => undefined })
        .then(seenEnd, (error: unknown) => String(error))
      await notes.until((note) => note === 'started')
      giveUp.abort('the person is tired')
      const end = await pending
      await notes.until((note) => Array.isArray(note))
      return [end, notes.entries, await call(scene, 'after')]
    },
  },
  {
    name: 'a cancellation of an unknown request is ignored',
    server: { capabilities: { tools: {} }, serve: tools({ after: () => text('fine') }) },
    on: isLegacy,
    play: async (scene) => {
      await scene.client.notify('notifications/cancelled', { requestId: 4711, reason: 'none' })
      return call(scene, 'after')
    },
  },
  {
    name: 'log messages of a call arrive before its answer, at every level, with logger and any data',
    server: {
      capabilities: { tools: {}, logging: {} },
      serve: tools({
        log: async (turn) => {
          for (const level of LEVELS)
            await turn.notify('notifications/message', { level, logger: 'db', data: { level, deep: [null] } })
          await turn.notify('notifications/message', { level: 'info', data: 'no logger', _meta: { 'com.example/l': 1 } })
          return text('done')
        },
      }),
    },
    on: isLegacy,
    play: async (scene) => [await call(scene, 'log'), plain(scene.client.notices)],
  },
  {
    name: 'log messages of a modern call have the level that the request asks for',
    server: {
      capabilities: { tools: {}, logging: {} },
      serve: tools({
        log: async (turn) => {
          for (const level of LEVELS) await turn.notify('notifications/message', { level, logger: 'db', data: { level } })
          return text('done')
        },
      }),
    },
    on: isModern,
    play: async ({ client }) => {
      const seen: unknown[] = []
      for (const level of [undefined, 'debug', 'warning', 'emergency'])
        seen.push(
          seenEnd(await client.request('tools/call', { name: 'log', ...(level && { _meta: { [LEVEL]: level } }) })),
          plain(client.notices).length,
        )
      return [seen, plain(client.notices)]
    },
  },
  {
    name: 'log messages outside of any call arrive, too',
    server: { capabilities: { tools: {}, logging: {} }, serve: tools({ only: () => text('x') }) },
    on: isLegacy,
    play: async (scene) => {
      await call(scene, 'only')
      for (const server of scene.servers)
        await server.notify('notifications/message', { level: 'warning', logger: 'boot', data: ['out of band'] })
      await scene.client.notices.until(method('notifications/message'))
      return plain(scene.client.notices)
    },
  },
  {
    name: 'the server accepts, refuses and applies the log level',
    server: {
      capabilities: { tools: {}, logging: {} },
      serve: (server, { notes }) => {
        tools({ said: () => shown(notes.entries) })(server)
        server.handle('logging/setLevel', ({ params }) => {
          notes.push(params['level'])
          if (params['level'] === 'debug') throw new Refused(-32602, 'not so loud', { max: 'info' })
          return {}
        })
      },
    },
    on: isLegacy,
    play: async (scene) => {
      const seen = await each(scene, ['logging/setLevel', { level: 'error' }], ['logging/setLevel', { level: 'debug' }])
      return [seen, await call(scene, 'said')]
    },
  },
  {
    name: 'an invalid log level is refused by the server',
    server: { capabilities: { logging: {} } },
    on: isLegacy,
    play: (scene) => each(scene, ['logging/setLevel', { level: 'loud' }]),
  },
  {
    name: 'vendor notifications reach the server and the client, within a call and outside',
    server: {
      capabilities: { tools: {} },
      serve: (server, { notes }) => {
        tools({
          tell: async (turn) => {
            await turn.notify('com.example/told', { n: 1, list: [] })
            await turn.notify('notifications/com.example/told', { n: 2 })
            return text('done')
          },
        })(server)
        server.on('com.example/hello', (params) => notes.push(params))
        server.on('notifications/com.example/hello', (params) => notes.push(params))
      },
    },
    on: isLegacy,
    play: async (scene) => {
      const { client, notes, servers } = scene
      await client.notify('com.example/hello', { from: 'client' })
      await client.notify('notifications/com.example/hello', { from: 'client', again: true })
      await notes.when(() => (notes.entries.length >= 2 ? true : undefined))
      const end = await call(scene, 'tell')
      for (const server of servers) await server.notify('com.example/news', { outside: true })
      await client.notices.until(method('com.example/news'))
      return [notes.entries, end, plain(client.notices)]
    },
  },
  {
    name: 'vendor notifications within a modern call reach the client',
    server: {
      capabilities: { tools: {} },
      serve: tools({
        tell: async (turn) => {
          await turn.notify('com.example/told', { n: 1, list: [] })
          return text('done')
        },
      }),
    },
    on: isModern,
    play: async (scene) => [await call(scene, 'tell'), plain(scene.client.notices)],
  },
  {
    name: 'progress of the client without a request, and its own notifications, have no effect',
    server: {
      capabilities: { tools: {} },
      serve: (server, { notes }) => {
        tools({ only: () => text('fine') })(server)
        server.on('notifications/roots/list_changed', () => notes.push('roots'))
      },
    },
    client: { capabilities: { roots: { listChanged: true } } },
    on: isLegacy,
    play: async (scene) => {
      await scene.client.notify('notifications/roots/list_changed')
      await scene.notes.until((note) => note === 'roots')
      return [await call(scene, 'only'), scene.notes.entries]
    },
  },
  ...LISTS.map((list): Scenario => ({
    name: `a change of ${list} is announced once, whether the list differs or not; the next change again`,
    server: { capabilities: ALL, serve: offering },
    play: async ({ client, announce }) => {
      await client.follow({ lists: [list] })
      await client.request('tools/list')
      const wanted = `notifications/${list}/list_changed`
      const count = (): number => client.notices.entries.filter(method(wanted)).length
      announce(list)
      await client.notices.when(() => (count() >= 1 ? true : undefined))
      announce(list)
      await client.notices.when(() => (count() >= 2 ? true : undefined))
      // What would follow a third announcement comes before this answer.
      return [seenEnd(await client.request('tools/list')), plain(client.notices)]
    },
  })),
  {
    name: 'a client that asks after the announcement gets the new list',
    server: {
      capabilities: ALL,
      serve: (server, { notes }) =>
        server.handle('tools/list', () => ({ tools: notes.entries.map((name) => tool(String(name))) })),
    },
    play: async ({ client, announce, notes }) => {
      await client.follow({ lists: ['tools'] })
      const before = seenEnd(await client.request('tools/list'))
      notes.push('new')
      announce('tools')
      await client.notices.until(method('notifications/tools/list_changed'))
      return [before, seenEnd(await client.request('tools/list')), plain(client.notices)]
    },
  },
  {
    name: 'a change made by a call is announced to its client',
    server: {
      capabilities: ALL,
      serve: (server, stage) => {
        tools({
          change: () => {
            stage.announce('tools')
            return text('changed')
          },
        })(server)
      },
    },
    play: async (scene) => {
      await scene.client.follow({ lists: ['tools'] })
      const end = await call(scene, 'change')
      await scene.client.notices.until(method('notifications/tools/list_changed'))
      return [end, plain(scene.client.notices)]
    },
  },
  {
    name: 'updates of a subscribed resource arrive, listed or not, and stop after unsubscribing',
    server: {
      capabilities: ALL,
      serve: (server, { notes }) => {
        offering(server)
        if (server.era === 'modern') return
        server.handle('resources/subscribe', ({ params }) => {
          notes.push(['subscribe', params])
          if (params['uri'] === 'note://refused') throw new Refused(-32602, 'not that one', { uri: params['uri'] })
          return {}
        })
        server.handle('resources/unsubscribe', ({ params }) => {
          notes.push(['unsubscribe', params])
          return {}
        })
      },
    },
    on: isLegacy,
    play: async (scene) => {
      const { client, update } = scene
      const count = (uri: string): number => client.notices.entries.filter(({ params }) => params?.['uri'] === uri).length
      const subscribed = await each(
        scene,
        ['resources/subscribe', { uri: 'note://a' }],
        ['resources/subscribe', { uri: 'unlisted://b?c#d' }],
        ['resources/subscribe', { uri: 'note://refused' }],
      )
      for (const uri of ['note://a', 'unlisted://b?c#d']) {
        update(uri)
        await client.notices.when(() => (count(uri) >= 1 ? true : undefined))
      }
      const unsubscribed = await each(
        scene,
        ['resources/unsubscribe', { uri: 'note://a' }],
        ['resources/unsubscribe', { uri: 'never://subscribed' }],
      )
      update('unlisted://b?c#d')
      await client.notices.when(() => (count('unlisted://b?c#d') >= 2 ? true : undefined))
      return [subscribed, unsubscribed, plain(client.notices), scene.notes.entries]
    },
  },
  {
    name: 'updates of a resource that a modern client listens for arrive, listed or not',
    server: { capabilities: ALL, serve: offering },
    on: isModern,
    play: async ({ client, update }) => {
      await client.follow({ uris: ['note://a', 'unlisted://b?c#d'] })
      for (const uri of ['note://a', 'unlisted://b?c#d']) {
        update(uri)
        await client.notices.until(({ params }) => params?.['uri'] === uri)
      }
      return plain(client.notices)
    },
  },
  {
    name: 'a server without subscriptions refuses them with its own error',
    server: { capabilities: { resources: {} }, serve: (server) => server.handle('resources/list', () => ({ resources: [] })) },
    on: isLegacy,
    play: (scene) => each(scene, ['resources/subscribe', { uri: 'a://b' }], ['resources/unsubscribe', { uri: 'a://b' }]),
  },
]

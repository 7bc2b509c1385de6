/** What goes beside calls: progress, cancellation, log messages, changes; and streams that break. */
import { isModern } from './cells.ts'
import type { Cell } from './cells.ts'
import {
  beginTool,
  callTool,
  crosses,
  exposed,
  exposedUri,
  heard,
  impossible,
  judge,
  projected,
  same,
  textOf,
} from './probing.ts'
import type { Expected, Feature, Pair } from './probing.ts'
import { listAll } from './content.ts'
import { SAID, watchedBy } from './server.ts'
import type { SessionHost } from '../fakes/http-hosts.ts'
import type { PipeHost } from '../fakes/pipe-host.ts'
import { KEY, metaOf } from '../fakes/messages.ts'
import type { JsonMap, Message } from '../fakes/messages.ts'
import { messagesOf, send } from '../fakes/raw-http.ts'

const progress: Feature = {
  name: 'progress',
  what: 'The server reports progress. It arrives before the answer, under the token of the host.',
  expected: () => 'full',
  probe: async (pair) => {
    const progressToken = `of ${pair.server.key}`
    const pending = beginTool(pair, 'progress', { meta: { progressToken } })
    const said = heard(pair, pending, ({ params }) => params?.['progressToken'] === progressToken)
    const { params } = await said
    await pending.response
    return judge(params, same(params, { progressToken, progress: 1, ...SAID.progress }), false)
  },
}

/** How a side gives up a request. */
const way = (cell: Cell): 'close' | 'notification' => (isModern(cell) && cell.transport === 'http' ? 'close' : 'notification')

const cancellation: Feature = {
  name: 'cancellation',
  what: 'The host cancels a call in flight, and the server stops it.',
  expected: (host, server) =>
    way(host) === way(server)
      ? 'full'
      : projected(
          'Over Streamable HTTP of 2026-07-28 the stream is closed, everywhere else a notification is sent.',
          'B138',
          'B140',
        ),
  probe: async (pair) => {
    const mark = `${pair.host.key} slow`
    const pending = pair.host.host.begin('tools/call', { name: exposed(pair, 'slow'), arguments: { mark } })
    const { fake } = pair.server
    const turn = await fake.until('tools/call', ({ params }) => (params['arguments'] as JsonMap | undefined)?.['mark'] === mark)
    pending.cancel()
    const isNotified = fake
      .until(
        'notifications/cancelled',
        ({ params, connection }) => connection === turn.connection && params['requestId'] === turn.id,
      )
      .then(() => 'notification')
    const seen = await Promise.race([isNotified, ...(isModern(pair.server) ? [turn.closed.then(() => 'close')] : [])])
    if (seen !== way(pair.server)) throw new Error(`the server saw ${seen}`)
    return seen === way(pair.host) ? 'full' : 'projected'
  },
}

const logging: Feature = {
  name: 'logging',
  what:
    'The host sets a log level and receives what the server logs during a call. (On pipes of 2026-07-28 a log message names ' +
    'no request. With several calls in flight it cannot be attributed and is dropped.)',
  isAlone: true,
  expected: (host, server) =>
    crosses(host, server)
      ? projected(
          'Legacy revisions set a level for a session, 2026-07-28 for each request: one is translated into the other.',
          'B146',
          'B147',
        )
      : 'full',
  probe: async (pair) => {
    const { host } = pair.host
    if (!isModern(pair.host)) await host.call('logging/setLevel', { level: 'info' })
    const pending = beginTool(pair, 'log', isModern(pair.host) ? { meta: { [KEY.logLevel]: 'info' } } : {})
    const isOfServer = ({ method, params }: Message): boolean =>
      method === 'notifications/message' && String(params?.['logger']) === pair.server.key
    const answered = pending.response.then(() => undefined)
    const { params } =
      (await Promise.race([heard(pair, pending, isOfServer), answered.then(() => heardSoon(pair, pending, isOfServer))])) ?? {}
    const isSaid = same({ level: params?.['level'], data: params?.['data'] }, SAID.log)
    return params === undefined ? 'impossible' : judge(params, isSaid && !crosses(pair.host, pair.server), isSaid)
  },
}

/** What has been heard by the time a further round trip is over. */
const heardSoon = async (pair: Pair, pending: Parameters<typeof heard>[1], matches: (message: Message) => boolean) => {
  await callTool(pair, 'echo')
  return [...pending.messages.entries, ...pair.host.host.heard.entries].find(matches)
}

const ANNOUNCED = projected(
  'A notification on the session on one side, a `subscriptions/listen` stream on the other: one is translated into the other.',
  'B122',
  'B128',
)
const announced = (host: Cell, server: Cell): Expected => (crosses(host, server) ? ANNOUNCED : 'full')

/** Runs `use` while the host listens in the way of its era; `told` waits for what has come since it was last called. */
const listening = async <T>(
  pair: Pair,
  filter: JsonMap,
  use: (told: (method: string, uri?: string) => Promise<Message>) => Promise<T>,
): Promise<T> => {
  const { host } = pair.host
  const stream = isModern(pair.host) ? host.begin('subscriptions/listen', { notifications: filter }) : undefined
  const journals = stream === undefined ? [host.heard] : [host.heard, stream.messages]
  const told = async (method: string, uri?: string): Promise<Message> => {
    const isIt = (said: Message): boolean =>
      said.method === method && metaOf(said)[KEY.subscriptionId] === stream?.id && said.params?.['uri'] === uri
    const message = await Promise.race(journals.map((journal) => journal.until(isIt)))
    for (const journal of journals) journal.clear()
    return message
  }
  if (stream !== undefined) await told('notifications/subscriptions/acknowledged')
  else host.heard.clear()
  try {
    return await use(told)
  } finally {
    stream?.cancel()
  }
}

const changes: Feature = {
  name: 'list_changed',
  what: 'The server adds a tool and announces that its list has changed.',
  expected: announced,
  probe: (pair) =>
    listening(pair, { toolsListChanged: true }, async (told) => {
      const { host, server } = pair
      const name = `more-${host.key}`
      server.extras.push({ name, inputSchema: { type: 'object' } })
      server.fake.changed('tools')
      for (;;) {
        await told('notifications/tools/list_changed')
        const { entries } = await listAll(pair, 'tools/list')
        if (entries.some((entry) => entry['name'] === exposed(pair, name))) break
      }
      return crosses(host, server) ? 'projected' : 'full'
    }),
}

const updates: Feature = {
  name: 'resource subscriptions',
  what: 'The host subscribes to a resource, and the server announces a change.',
  expected: announced,
  probe: async (pair) => {
    const own = watchedBy(pair.host)
    const uri = exposedUri(pair, own)
    const { fake } = pair.server
    const isAsked = isModern(pair.server)
      ? fake.until('subscriptions/listen', ({ params }) => {
          const { resourceSubscriptions } = params['notifications'] as { resourceSubscriptions?: string[] }
          return resourceSubscriptions?.includes(own) === true
        })
      : fake.until('resources/subscribe', ({ params }) => params['uri'] === own)
    return listening(pair, { resourceSubscriptions: [uri] }, async (told) => {
      if (!isModern(pair.host)) await pair.host.host.call('resources/subscribe', { uri })
      await isAsked
      const seen = told('notifications/resources/updated', uri)
      fake.updated(own)
      const { params } = await seen
      return judge(params, params?.['uri'] === uri && !crosses(pair.host, pair.server), params?.['uri'] === uri)
    })
  },
}

const resumes = ({ revision, transport }: Cell): boolean => transport === 'http' && revision !== '2026-07-28'

const resumption: Feature = {
  name: 'resumption by the host',
  what: 'The host loses the stream of a call, resumes it, and gets the answer.',
  expected: (host) => {
    if (host.transport === 'stdio') return 'none'
    if (resumes(host)) return 'full'
    return isModern(host)
      ? impossible('2026-07-28 has no resumption: closing the stream cancels the call.', 'B138', 'B201')
      : impossible('HTTP+SSE has no resumption: the session ends with its stream, and so does the call.', '5.1')
  },
  probe: async (pair) => {
    const { fake } = pair.server
    const mark = `${pair.host.key} lost`
    const called = fake.until('tools/call', ({ params }) => (params['arguments'] as JsonMap | undefined)?.['mark'] === mark)
    const params = { name: exposed(pair, 'slow'), arguments: { mark }, _meta: { progressToken: mark } }
    if (resumes(pair.host)) return resume(pair, params, called)
    const other = await pair.host.connect()
    const pending = other.begin('tools/call', params)
    const turn = await called
    if (isModern(pair.host)) pending.cancel()
    else await other[Symbol.asyncDispose]()
    const isCancelled = fake.until(
      'notifications/cancelled',
      (said) => said.connection === turn.connection && said.params['requestId'] === turn.id,
    )
    await Promise.race([isCancelled, turn.closed, turn.connection.closed])
    return 'impossible'
  },
}

const resume = async (pair: Pair, params: JsonMap, called: ReturnType<Pair['server']['fake']['until']>) => {
  const { url } = pair.gateway
  const session = (pair.host.host as SessionHost).headers()
  const body = JSON.stringify({ jsonrpc: '2.0', id: `lost ${pair.server.key}`, method: 'tools/call', params })
  const stream = send(url, { headers: session, body })
  const turn = await called
  turn.progress(1)
  const lost = await stream
  const { id } = await lost.events.until(({ data }) => data.includes('notifications/progress'))
  lost.close()
  turn.answer({ content: [{ type: 'text', text: 'late' }] })
  const back = await send(url, { method: 'GET', headers: { ...session, accept: 'text/event-stream', 'last-event-id': id } })
  const answer = await back.events.until(({ data }) => data.includes('"result"'))
  back.close()
  return judge(answer.data, answer.data.includes('late'), false)
}

const serverResumption: Feature = {
  name: 'resumption by Trunkline',
  what: 'The server closes the stream in the middle of a call, and Trunkline resumes it.',
  expected: (_, server) => (resumes(server) ? 'full' : 'none'),
  probe: async (pair) => judge('', textOf(await callTool(pair, 'drop')) === 'the rest', false),
}

const batches: Feature = {
  name: 'batches of the host',
  what: 'The host sends two calls in one array (only in 2025-03-26).',
  expected: ({ revision }) =>
    revision === '2025-03-26'
      ? projected('Servers of every other revision get single messages, one after the other.', 'B206')
      : 'none',
  probe: async (pair) => {
    const ids = ['one', 'two'].map((id) => `${id} ${pair.host.key} ${pair.server.key}`)
    const calls = ids.map((id) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: exposed(pair, 'echo'), arguments: { id } },
    }))
    const answers = await answersTo(pair, JSON.stringify(calls), ids)
    const isServed = ids.every((id) => answers.some((answer) => answer.id === id && answer.result !== undefined))
    const arrived = pair.server.fake
      .all('tools/call')
      .filter(({ params }) => ids.includes(String((params['arguments'] as JsonMap)?.['id'])))
    return judge(answers, false, isServed && arrived.length === 2)
  },
}

/** The answers to a batch, in one array or one by one. */
const answersTo = async ({ host, gateway }: Pair, body: string, ids: readonly string[]): Promise<Message[]> => {
  if (host.transport === 'http') {
    const headers = (host.host as SessionHost).headers()
    return (await messagesOf(await send(gateway.url, { headers, body }))).flat()
  }
  const all = (): Message[] | undefined => {
    const found = host.host.heard.entries.flat().filter(({ id }) => ids.includes(String(id)))
    return found.length === ids.length ? found : undefined
  }
  if (host.transport === 'stdio') (host.host as PipeHost).write(body)
  else host.host.sendRaw(body, 'batch')
  return host.host.heard.when(all)
}

const serverBatches: Feature = {
  name: 'batches of the server',
  what: 'The server answers in an array (only in 2025-03-26).',
  expected: (_, { revision }) =>
    revision === '2025-03-26'
      ? projected('Hosts of every other revision get single messages, one after the other.', '5.4')
      : 'none',
  probe: async (pair) => judge('', false, textOf(await callTool(pair, 'batch')) === 'batched'),
}

export const streamFeatures: readonly Feature[] = [
  progress,
  cancellation,
  logging,
  changes,
  updates,
  resumption,
  serverResumption,
  batches,
  serverBatches,
]

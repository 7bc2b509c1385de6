/**
 * What the servers of the crowd do, in the words of either era: `ask` puts questions that carry the caller's nonce and hands back
 * what was answered; `touch` reports a change of a resource once somebody watches it.
 */
import type { FakeDownstream, Handle } from '../fake-downstream.ts'
import { KEY } from '../fakes/messages.ts'
import type { JsonMap } from '../fakes/messages.ts'
import type { Turn } from '../fakes/turn.ts'

export const QUESTIONS = ['elicitation/create', 'sampling/createMessage', 'roots/list'] as const
export type Asking = (typeof QUESTIONS)[number]

/** Arguments of `ask`: one question after the other. */
export interface Ask {
  readonly nonce: string
  readonly asks: readonly Asking[]
}

const question = (method: Asking, nonce: string): JsonMap => {
  if (method === 'roots/list') return {}
  if (method === 'sampling/createMessage')
    return { messages: [{ role: 'user', content: { type: 'text', text: nonce } }], maxTokens: 9 }
  return { message: nonce, requestedSchema: { type: 'object', properties: { nonce: { type: 'string' } } } }
}

/** Who watches what at one server; empty when the gateway has taken back all it asked for. */
export class Watched {
  /** By watcher: a connection, or a request to listen. */
  readonly #uris = new Map<object, Set<string>>()
  readonly #waiting = new Set<() => void>()

  get size(): number {
    let size = 0
    for (const uris of this.#uris.values()) size += uris.size
    return size
  }

  add(watcher: object, uris: readonly string[]): void {
    this.#uris.set(watcher, new Set([...(this.#uris.get(watcher) ?? []), ...uris]))
    for (const wake of this.#waiting) wake()
  }

  remove(watcher: object, uri?: string): void {
    if (uri === undefined) this.#uris.delete(watcher)
    else this.#uris.get(watcher)?.delete(uri)
  }

  /** The watchers of one resource, as soon as there is one. */
  async of(uri: string): Promise<object[]> {
    for (;;) {
      const watchers = [...this.#uris].flatMap(([watcher, uris]) => (uris.has(uri) ? [watcher] : []))
      if (watchers.length > 0) return watchers
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      await promise
      this.#waiting.delete(resolve)
    }
  }
}

/** Teaches a running fake; what its resources' watchers are is kept in `watched`. */
export const teach = (fake: FakeDownstream, watched: Watched): void => {
  const touch = async (uri: string): Promise<JsonMap> => {
    for (const watcher of await watched.of(uri)) tell(watcher as Turn | Turn['connection'], uri)
    return { content: [] }
  }
  const ask = fake.era === 'modern' ? askByResult : askByRequest
  fake.on('tools/call', (turn) => {
    const args = turn.params['arguments'] as JsonMap
    return turn.params['name'] === 'touch' ? touch(String(args['uri'])) : ask(turn, args as unknown as Ask)
  })
  for (const [method, handle] of Object.entries(fake.era === 'modern' ? listening(watched) : subscribing(watched)))
    fake.on(method, handle)
}

const tell = (watcher: Turn | Turn['connection'], uri: string): void => {
  if ('params' in watcher) watcher.notify('notifications/resources/updated', { uri, _meta: { [KEY.subscriptionId]: watcher.id } })
  else watcher.notify('notifications/resources/updated', { uri })
}

const askByRequest = async (turn: Turn, { nonce, asks }: Ask): Promise<JsonMap> => {
  const answers = []
  for (const method of asks) {
    const { result, error } = await turn.ask(method, question(method, nonce))
    answers.push(result ?? error)
  }
  return { content: [], structuredContent: { answers } }
}

const askByResult = (turn: Turn, { nonce, asks }: Ask): JsonMap => {
  const { requestState, inputResponses } = turn.params as { requestState?: string; inputResponses?: { q: JsonMap } }
  const state = JSON.parse(requestState ?? `{"nonce":${JSON.stringify(nonce)},"answers":[]}`) as {
    nonce: string
    answers: JsonMap[]
  }
  const answers = inputResponses === undefined ? state.answers : [...state.answers, inputResponses.q]
  const next = asks[answers.length]
  if (next === undefined || state.nonce !== nonce) return { content: [], structuredContent: { answers } }
  return {
    resultType: 'input_required',
    inputRequests: { q: { method: next, params: question(next, nonce) } },
    requestState: JSON.stringify({ nonce, answers }),
  }
}

const subscribing = (watched: Watched): Record<string, Handle> => ({
  'resources/subscribe': ({ connection, params }) => {
    watched.add(connection, [String(params['uri'])])
    void connection.closed.then(() => watched.remove(connection))
    return {}
  },
  'resources/unsubscribe': ({ connection, params }) => {
    watched.remove(connection, String(params['uri']))
    return {}
  },
})

const listening = (watched: Watched): Record<string, Handle> => {
  const open = new Map<string, Turn>()
  return {
    'subscriptions/listen': (turn) => {
      const { resourceSubscriptions = [] } = turn.params['notifications'] as { resourceSubscriptions?: string[] }
      open.set(String(turn.id), turn)
      watched.add(turn, resourceSubscriptions)
      for (const over of [turn.closed, turn.connection.closed]) void over.then(() => watched.remove(turn))
      const { notifications } = turn.params
      turn.notify('notifications/subscriptions/acknowledged', { notifications, _meta: { [KEY.subscriptionId]: turn.id } })
    },
    'notifications/cancelled': ({ params }) => {
      const turn = open.get(String(params['requestId']))
      if (turn !== undefined) watched.remove(turn)
    },
  }
}

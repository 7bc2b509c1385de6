/**
 * MCP servers that do what a test says, message by message, over any transport of either era. They write raw messages and share
 * no code with `src/`, so that a mistake cannot cancel itself.
 *
 * `fake.offering('echo')` says what a server is; `startGateway` starts it and `gateway.fake(key)` is the running one.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { openHttp, openPipes, openSse } from './fakes/carriers.ts'
import type { Arrivals, Carrier } from './fakes/carriers.ts'
import type { FakeConnection } from './fakes/connection.ts'
import { Journal } from './fakes/journal.ts'
import { KEY, metaOf, MODERN, notification, RpcError } from './fakes/messages.ts'
import type { JsonMap, Message } from './fakes/messages.ts'
import { Turn } from './fakes/turn.ts'
import type { Received } from './fakes/turn.ts'
import { relayCommand } from './relay.ts'
import type { RelayCommand } from './relay.ts'

export type FakeKind = 'legacy http' | 'legacy sse' | 'legacy stdio' | 'modern http' | 'modern stdio'
export const everyFakeKind: readonly FakeKind[] = ['legacy http', 'legacy sse', 'legacy stdio', 'modern http', 'modern stdio']

/** Answers one request: the result, or nothing where the handler answers by itself, later or never. Throw `RpcError` to fail. */
export type Handle = (turn: Turn) => JsonMap | undefined | void | Promise<JsonMap | undefined | void>

export interface FakeSpec {
  readonly kind?: FakeKind
  /** Names, or whole definitions. */
  readonly tools?: readonly (string | JsonMap)[]
  readonly resources?: readonly (string | JsonMap)[]
  readonly templates?: readonly (string | JsonMap)[]
  readonly prompts?: readonly (string | JsonMap)[]
  /** In place of what is offered. */
  readonly capabilities?: JsonMap
  readonly instructions?: string
  /** What `initialize` is answered with; the requested one by default. */
  readonly revision?: string
  readonly on?: Readonly<Record<string, Handle>> | undefined
}

export const fake = {
  /** A server with these tools. */
  offering: (...tools: (string | JsonMap)[]): FakeSpec => ({ tools }),
  /** Any server. */
  of: (spec: FakeSpec): FakeSpec => spec,
  never: (): Promise<undefined> => new Promise(() => undefined),
}

export class FakeDownstream implements AsyncDisposable {
  readonly kind: FakeKind
  readonly spec: FakeSpec
  /** Everything received since it was started, or since `forget`. */
  readonly journal = new Journal<Turn>()
  readonly connections: FakeConnection[] = []
  /** Answers HTTP requests by itself where it returns true. */
  intercept: (request: IncomingMessage, response: ServerResponse, body: string) => boolean = () => false
  readonly offers: { tools: JsonMap[]; resources: JsonMap[]; resourceTemplates: JsonMap[]; prompts: JsonMap[] }
  readonly #handlers: Map<string, Handle>
  readonly #listens = new Set<Turn>()
  #carrier: Carrier | undefined

  private constructor(spec: FakeSpec) {
    this.spec = spec
    this.kind = spec.kind ?? 'legacy http'
    const named = (list: FakeSpec['tools'], field: string, more: JsonMap = {}): JsonMap[] =>
      (list ?? []).map((entry) => (typeof entry === 'string' ? { name: entry, [field]: entry, ...more } : entry))
    this.offers = {
      tools: named(spec.tools, 'name', { inputSchema: { type: 'object' } }),
      resources: named(spec.resources, 'uri'),
      resourceTemplates: named(spec.templates, 'uriTemplate'),
      prompts: named(spec.prompts, 'name'),
    }
    this.#handlers = new Map(Object.entries({ ...this.#defaults(), ...spec.on }))
  }

  static async start(spec: FakeSpec): Promise<FakeDownstream> {
    const downstream = new FakeDownstream(spec)
    const { kind, era } = downstream
    const arrivals = downstream.#arrivals()
    downstream.#carrier = kind.endsWith('stdio')
      ? await openPipes(era, arrivals)
      : kind === 'legacy sse'
        ? await openSse(arrivals)
        : await openHttp(era, arrivals)
    return downstream
  }

  get era(): 'legacy' | 'modern' {
    return this.kind.startsWith('modern') ? 'modern' : 'legacy'
  }
  /** Where it is reached: the command line of a child, or a URL. */
  get address(): RelayCommand | { readonly url: URL } {
    const port = this.#carrier?.port ?? 0
    if (!this.kind.endsWith('stdio')) return { url: new URL(`http://127.0.0.1:${port}/mcp`) }
    return relayCommand(port)
  }
  get received(): readonly Received[] {
    return this.journal.entries
  }

  /** All messages of one method. */
  all(method: string): Turn[] {
    return this.journal.entries.filter(({ message }) => message.method === method)
  }

  /** The first message of a method, now or later. */
  until(method: string, matches: (turn: Turn) => boolean = () => true): Promise<Turn> {
    return this.journal.until((turn) => turn.message.method === method && matches(turn))
  }

  /** Forgets what was received, so that a test sees only what it caused. */
  forget(): void {
    this.journal.clear()
  }

  on(method: string, handle: Handle): this {
    this.#handlers.set(method, handle)
    return this
  }

  /** Puts a method back to what the fake does by itself. */
  off(method: string): void {
    const handle = this.#defaults()[method]
    if (handle === undefined) this.#handlers.delete(method)
    else this.#handlers.set(method, handle)
  }

  /** Announces that lists changed, in the manner of the era. */
  changed(list: 'tools' | 'prompts' | 'resources'): void {
    this.#tell(`notifications/${list}/list_changed`, {}, (asked) => asked[`${list}ListChanged`] === true)
  }

  /** Reports that a resource changed, in the manner of the era. */
  updated(uri: string): void {
    this.#tell('notifications/resources/updated', { uri }, (asked) => Array.isArray(asked['resourceSubscriptions']))
  }

  /** The open `subscriptions/listen` requests. */
  get listens(): readonly Turn[] {
    return [...this.#listens]
  }

  /** Takes a cancellation for a listen, if it is of one: what the fake does with each by itself. */
  endListen({ params, connection }: Turn): void {
    for (const turn of this.#listens)
      if (turn.connection === connection && turn.id === params['requestId']) this.#listens.delete(turn)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#carrier?.[Symbol.asyncDispose]()
  }

  #tell(method: string, params: JsonMap, isAsked: (filter: JsonMap) => boolean): void {
    if (this.era === 'legacy') {
      for (const connection of this.connections) if (connection.isOpen) connection.say(notification(method, params))
      return
    }
    for (const turn of this.#listens)
      if (isAsked(turn.params['notifications'] as JsonMap))
        turn.notify(method, { ...params, _meta: { [KEY.subscriptionId]: turn.id } })
  }

  #arrivals(): Arrivals {
    return {
      connected: (connection) => this.connections.push(connection),
      intercept: (request, response, body) => this.intercept(request, response, body),
      text: (text, connection, headers, carrier, response) => {
        const parsed = JSON.parse(text) as Message | Message[]
        if (Array.isArray(parsed)) throw new Error('the gateway must never send a batch')
        const turn = new Turn({ message: parsed, raw: text, headers, connection }, carrier, response)
        void this.#serve(turn)
      },
    }
  }

  async #serve(turn: Turn): Promise<void> {
    const { message, connection } = turn
    if (message.method === 'initialize') connection.declared = turn.params['capabilities'] as JsonMap
    if (message.method === undefined) connection.answered(message)
    const handle = this.#handlers.get(message.method ?? '')
    this.journal.push(turn)
    if (message.id === undefined || message.method === undefined) {
      await handle?.(turn)
      return turn.finishQuietly()
    }
    connection.open.add(turn)
    try {
      if (handle === undefined) throw new RpcError({ code: -32601, message: 'Method not found' })
      const result = await handle(turn)
      if (result !== undefined) turn.answer(result)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      turn.fail(error.code, error.message, error.data)
    }
  }

  #defaults(): Record<string, Handle> {
    const { spec, offers } = this
    const capabilities = spec.capabilities ?? {
      ...(spec.tools !== undefined && { tools: { listChanged: true } }),
      ...((spec.resources ?? spec.templates) !== undefined && { resources: { listChanged: true, subscribe: true } }),
      ...(spec.prompts !== undefined && { prompts: { listChanged: true } }),
      logging: {},
      completions: {},
    }
    const own = spec.instructions === undefined ? {} : { instructions: spec.instructions }
    const list =
      (result: () => JsonMap): Handle =>
      () =>
        this.era === 'modern' ? { ttlMs: 60_000, cacheScope: 'public', ...result() } : result()
    const both: Record<string, Handle> = {
      'tools/list': list(() => ({ tools: offers.tools })),
      'resources/list': list(() => ({ resources: offers.resources })),
      'resources/templates/list': list(() => ({ resourceTemplates: offers.resourceTemplates })),
      'prompts/list': list(() => ({ prompts: offers.prompts })),
      'tools/call': ({ params }) => ({ content: [{ type: 'text', text: JSON.stringify(params['arguments'] ?? null) }] }),
      'resources/read': ({ params }) => ({ contents: [{ uri: params['uri'], text: `text of ${String(params['uri'])}` }] }),
      'prompts/get': ({ params }) => ({ messages: [{ role: 'user', content: { type: 'text', text: String(params['name']) } }] }),
      'completion/complete': () => ({ completion: { values: ['one', 'two'] } }),
    }
    if (this.era === 'modern')
      return {
        ...both,
        'server/discover': list(() => ({ supportedVersions: [MODERN], capabilities, ...own })),
        'subscriptions/listen': (turn) => this.#listen(turn),
        'notifications/cancelled': (turn) => this.endListen(turn),
      }
    return {
      ...both,
      initialize: ({ params }) => ({
        protocolVersion: spec.revision ?? params['protocolVersion'],
        capabilities,
        serverInfo: { name: 'fake', version: '1' },
        ...own,
      }),
      ping: () => ({}),
      'logging/setLevel': () => ({}),
      'resources/subscribe': () => ({}),
      'resources/unsubscribe': () => ({}),
    }
  }

  #listen(turn: Turn): void {
    this.#listens.add(turn)
    void turn.closed.then(() => this.#listens.delete(turn))
    void turn.connection.closed.then(() => this.#listens.delete(turn))
    const { notifications } = turn.params
    turn.notify('notifications/subscriptions/acknowledged', { notifications, _meta: { [KEY.subscriptionId]: turn.id } })
  }
}

/** The per-request keys of a modern request. */
export const describes = (received: Received): JsonMap => metaOf(received.message)

/** Fake hosts over HTTP: sessions, HTTP+SSE, and requests that describe themselves. They keep their connections, as real ones do. */
import { Agent } from 'node:http'
import type { CallOptions, Host, HostOptions } from '../fake-host.ts'
import type { TestGateway } from '../gateway.ts'
import { BaseHost } from './base-host.ts'
import type { Tracked } from './base-host.ts'
import { MODERN } from './messages.ts'
import type { JsonMap, Message } from './messages.ts'
import { send } from './raw-http.ts'
import type { RawReply } from './raw-http.ts'

/** Idle connections are closed after this, or what the answer says (`Keep-Alive`), which Node's agents read only beside a limit of their own. */
const LONGEST_IDLE_MS = 600_000
/** How often the stream of one request is opened again, and a message sent again. */
const MAX_RESUMES = 20

/** Reads the answer to one POST to its end. */
abstract class PostingHost extends BaseHost {
  readonly url: URL
  protected readonly agent = new Agent({ keepAlive: true, timeout: LONGEST_IDLE_MS })
  protected isClosed = false
  readonly #open = new Set<RawReply>()
  readonly #sent = new Set<Promise<void>>()

  constructor(era: 'legacy' | 'modern', url: URL, options: HostOptions) {
    super(era, options)
    this.url = url
  }

  protected bearer(): Record<string, string> {
    const { token } = this.options
    return token === undefined ? {} : { authorization: `Bearer ${token()}` }
  }

  protected abstract headers(text: string): Record<string, string | undefined>
  protected opened(_reply: RawReply): void {
    // Legacy hosts take their session from here.
  }

  protected carry(text: string, pending?: Tracked, options: CallOptions = {}): void {
    const sent = this.#post(text, pending, options)
      .catch(() => undefined)
      .finally(() => {
        pending?.ended()
        this.#sent.delete(sent)
      })
    this.#sent.add(sent)
  }

  async #post(text: string, pending: Tracked | undefined, options: CallOptions): Promise<void> {
    let abort: () => void = () => undefined
    if (pending !== undefined && this.era === 'modern') pending.cancel = () => abort()
    const post = (): Promise<RawReply> =>
      send(this.url, {
        headers: { ...this.bearer(), ...this.headers(text), ...options.headers },
        body: text,
        agent: this.agent,
        started: (stop) => (abort = stop),
      })
    const reply = pending === undefined ? await this.#repeated(post) : await post()
    this.opened(reply)
    if (pending !== undefined) pending.status = reply.status
    await this.read(reply, pending)
  }

  /** What has no answer of its own may be sent again: nothing of it is done twice. */
  async #repeated(post: () => Promise<RawReply>): Promise<RawReply> {
    const { resumes } = this.options
    let reply = await post()
    if (resumes === undefined) return reply
    for (let tries = 0; reply.status >= 502 && !this.isClosed && tries < MAX_RESUMES; tries++) {
      await resumes()
      reply = await post()
    }
    return reply
  }

  /** Takes up what comes on one answer until it ends. */
  protected async read(reply: RawReply, pending?: Tracked): Promise<void> {
    // Asked for before the host was closed: nothing else would close it.
    if (this.isClosed) return reply.close()
    this.#open.add(reply)
    let taken = 0
    const takeEvents = (): true | undefined => {
      for (; taken < reply.events.entries.length; taken++) {
        const { data } = reply.events.entries[taken]!
        if (data !== '') this.take(data, pending)
      }
      return undefined
    }
    void reply.events.when(takeEvents)
    const text = await reply.body.catch(() => '')
    takeEvents()
    this.#open.delete(reply)
    if (text !== '') this.take(text, pending)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosed = true
    for (const reply of this.#open) reply.close()
    await Promise.all(this.#sent)
    this.agent.destroy()
  }
}

export class SessionHost extends PostingHost {
  session: string | undefined
  /** The standalone stream. */
  stream: RawReply | undefined

  async start(): Promise<this> {
    await this.initialize()
    if (this.options.deaf !== true) await this.listen()
    return this
  }

  /** Opens the standalone stream, or resumes one. */
  async listen(lastEventId?: string): Promise<RawReply> {
    const reply = await send(this.url, {
      method: 'GET',
      agent: this.agent,
      headers: {
        ...this.bearer(),
        ...this.headers(),
        accept: 'text/event-stream',
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
    })
    this.stream = reply
    void this.read(reply)
    return reply
  }

  /** A stream that breaks goes on where it ended: at another replica, it may be. */
  protected override async read(reply: RawReply, pending?: Tracked): Promise<void> {
    await super.read(reply, pending)
    const { resumes } = this.options
    if (resumes === undefined) return
    const isStandalone = pending === undefined && reply === this.stream
    let last = lastIdOf(reply)
    for (let tries = 0; !this.isClosed; tries++) {
      if (!isStandalone && (last === undefined || pending?.isOpen !== true || tries >= MAX_RESUMES)) return
      await resumes()
      if (this.isClosed) return
      if (pending !== undefined) pending.requests++
      const next = await this.request('GET', { accept: 'text/event-stream', 'last-event-id': last }).catch(() => undefined)
      // It has ended for good: a host begins a new session, or takes a stream from its beginning.
      if (next !== undefined && next.status >= 400 && next.status < 500) {
        if (next.status === 404 || last === undefined || !isStandalone) return
        last = undefined
      } else if (next?.status === 200) {
        if (isStandalone) this.stream = next
        await super.read(next, pending)
        last = lastIdOf(next) ?? last
      }
    }
  }

  /** Another request of this session, without a body. */
  request(method: 'GET' | 'DELETE', headers: Readonly<Record<string, string | undefined>> = {}): Promise<RawReply> {
    return send(this.url, { method, agent: this.agent, headers: { ...this.bearer(), ...this.headers(), ...headers } })
  }

  /** Another request of this session, raw. */
  headers(): Record<string, string | undefined> {
    const { revision = '2025-11-25' } = this.options
    if (this.session === undefined) return {}
    return { 'mcp-session-id': this.session, ...(revision >= '2025-06-18' && { 'mcp-protocol-version': revision }) }
  }

  protected override opened(reply: RawReply): void {
    const id = reply.headers['mcp-session-id']
    if (this.session === undefined && typeof id === 'string') this.session = id
  }
}

const lastIdOf = ({ events }: RawReply): string | undefined => events.entries.findLast(({ id }) => id !== undefined)?.id

class ModernHost extends PostingHost {
  async start(): Promise<this> {
    await this.discover()
    return this
  }

  protected headers(text: string): Record<string, string | undefined> {
    return mirrors(JSON.parse(text) as Message)
  }
}

/** The headers that mirror a modern message. */
export const mirrors = ({ method, params }: Message): Record<string, string> => {
  const isTask = method === 'tasks/get' || method === 'tasks/update' || method === 'tasks/cancel'
  const name = isTask ? params?.['taskId'] : (params?.['name'] ?? params?.['uri'])
  const isNamed = isTask || method === 'tools/call' || method === 'prompts/get' || method === 'resources/read'
  return {
    'mcp-protocol-version': MODERN,
    ...(method !== undefined && { 'mcp-method': method }),
    ...(isNamed && typeof name === 'string' && { 'mcp-name': headerText(name) }),
  }
}

/** Plain where a header can carry it, else the sentinel. */
export const headerText = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

class SseHost extends PostingHost {
  #stream: RawReply | undefined
  #isOver = false
  #messages: URL

  constructor(url: URL, options: HostOptions) {
    super('legacy', url, options)
    this.#messages = url
  }

  async start(): Promise<this> {
    const stream = await send(this.url, { method: 'GET', headers: { ...this.bearer(), accept: 'text/event-stream' } })
    this.#stream = stream
    void stream.closed.then(() => {
      this.#isOver = true
      this.broken()
    })
    try {
      const { data } = await stream.events.until(({ event }) => event === 'endpoint')
      this.#messages = new URL(data, this.url)
      let taken = 1
      void stream.events.when(() => {
        for (; taken < stream.events.entries.length; taken++) this.take(stream.events.entries[taken]!.data)
        return undefined
      })
      await this.initialize()
    } catch (error) {
      // Not let in: nobody else would close its stream.
      await this[Symbol.asyncDispose]()
      throw error
    }
    return this
  }

  protected override carry(text: string, pending?: Tracked): void {
    if (this.#isOver) return pending?.ended()
    send(this.#messages, { headers: this.bearer(), body: text, agent: this.agent })
      .then(async (reply) => {
        // A refusal of the message itself comes on the stream as well; with these the session is gone.
        if (reply.status === 404 || reply.status >= 500) pending?.ended()
        await reply.body
      })
      // Whether the gateway has it is not known: the answer may still come.
      .catch(() => undefined)
  }

  protected headers(): JsonMap & Record<string, string | undefined> {
    return {}
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#stream?.close()
    this.agent.destroy()
  }
}

export const connectHttp = (gateway: TestGateway, options: HostOptions = {}): Promise<SessionHost> =>
  new SessionHost('legacy', urlOf(gateway, '/mcp', options), options).start()

export const connectModernHttp = (gateway: TestGateway, options: HostOptions = {}): Promise<Host> =>
  new ModernHost('modern', urlOf(gateway, '/mcp', options), options).start()

export const connectSse = (gateway: TestGateway, options: HostOptions = {}): Promise<Host> =>
  new SseHost(urlOf(gateway, '/sse', options), options).start()

const urlOf = (gateway: TestGateway, base: string, { path, toolset }: HostOptions): URL =>
  new URL(path ?? (toolset === undefined ? base : `${base}/${toolset}`), gateway.url)

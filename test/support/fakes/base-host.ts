/** What all fake hosts share: ids, what is pending, what was heard. */
import type { Answering, CallOptions, Host, HostOptions, Pending } from '../fake-host.ts'
import { Journal } from './journal.ts'
import { KEY, MODERN, RpcError } from './messages.ts'
import type { JsonMap, Message } from './messages.ts'

export class Tracked implements Pending {
  readonly id: string | number
  readonly messages = new Journal<Message>()
  readonly texts: string[] = []
  readonly response: Promise<Message>
  readonly raw: Promise<string>
  readonly over: Promise<void>
  cancel: () => void = () => undefined
  status: number | undefined
  /** Neither answered nor given up. */
  isOpen = true
  /** It, and those that have resumed its stream. */
  requests = 1
  readonly #raw = Promise.withResolvers<string>()
  readonly #over = Promise.withResolvers<void>()

  constructor(id: string | number) {
    this.id = id
    this.raw = this.#raw.promise
    this.response = this.raw.then((text) => JSON.parse(text) as Message)
    this.response.catch(() => undefined)
    this.over = this.#over.promise
  }

  answered(text: string): void {
    this.isOpen = false
    this.#raw.resolve(text)
    this.#over.resolve()
  }

  /** Nothing more will come. */
  ended(): void {
    this.isOpen = false
    this.#raw.reject(new Error(`request ${this.id} was not answered`))
    this.#over.resolve()
  }
}

export abstract class BaseHost implements Host {
  readonly era: 'legacy' | 'modern'
  readonly heard = new Journal<Message>()
  readonly texts: string[] = []
  welcome: JsonMap = {}
  protected readonly options: HostOptions
  protected readonly pending = new Map<string, Tracked>()
  readonly #answers = new Map<string, Answering>()
  readonly #written = new Map<string, (text: string) => string>()
  #nextId = 1

  constructor(era: 'legacy' | 'modern', options: HostOptions) {
    this.era = era
    this.options = options
  }

  /** Carries one message; of requests the pending one is given. */
  protected abstract carry(text: string, pending?: Tracked, options?: CallOptions): void

  abstract [Symbol.asyncDispose](): Promise<void>

  async call(method: string, params?: JsonMap, options?: CallOptions): Promise<JsonMap> {
    const pending = this.begin(method, params, options) as Tracked
    const { result, error } = await pending.response
    if (error !== undefined) throw new RpcError(error, pending.status)
    return result ?? {}
  }

  begin(method: string, params: JsonMap = {}, options: CallOptions = {}): Pending {
    const id = options.id ?? this.#nextId++
    const meta = { ...this.ownMeta(), ...(params['_meta'] as JsonMap | undefined), ...options.meta }
    const whole = Object.keys(meta).length > 0 ? { ...params, _meta: meta } : params
    return this.sendRaw(JSON.stringify({ jsonrpc: '2.0', id, method, params: whole }), id, options)
  }

  sendRaw(text: string, id: string | number, options?: CallOptions): Pending {
    const tracked = new Tracked(id)
    tracked.cancel = () => this.cancel(tracked)
    this.pending.set(JSON.stringify(id), tracked)
    this.carry(text, tracked, options)
    return tracked
  }

  notify(method: string, params?: JsonMap): void {
    this.carry(JSON.stringify({ jsonrpc: '2.0', method, ...(params !== undefined && { params }) }))
  }

  answer(method: string, handle: Answering): void {
    this.#answers.set(method, handle)
  }

  answerText(method: string, write: (text: string) => string): void {
    this.#written.set(method, write)
  }

  protected cancel(tracked: Tracked): void {
    this.notify('notifications/cancelled', { requestId: tracked.id })
  }

  /** What all answers came on is closed: none will come. */
  protected broken(): void {
    for (const tracked of this.pending.values()) tracked.ended()
    this.pending.clear()
  }

  /** Takes up one message; `on`: the request on whose stream it came. */
  protected take(text: string, on?: Tracked): void {
    const message = JSON.parse(text) as Message
    if (message.method === undefined) {
      const key = JSON.stringify(message.id ?? null)
      const tracked = on ?? this.pending.get(key)
      this.pending.delete(key)
      if (tracked === undefined) this.heard.push(message)
      else tracked.answered(text)
      return
    }
    ;(on ?? this).texts.push(text)
    ;(on?.messages ?? this.heard).push(message)
    const handle = this.#answers.get(message.method)
    const { id, params = {} } = message
    const written = this.#written.get(message.method)
    if (id !== undefined && written !== undefined)
      return this.carry(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${written(text)}}`)
    if (id === undefined || handle === undefined) return
    const say = (outcome: object): void => this.carry(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
    const outcome = outcomeOf(() => handle(params))
    const { result } = outcome
    if (result instanceof Promise) void result.then((late: JsonMap) => say({ result: late }))
    else say(outcome)
  }

  protected ownMeta(): JsonMap {
    const { capabilities = {}, meta = {} } = this.options
    if (this.era === 'legacy') return meta
    return {
      [KEY.version]: MODERN,
      [KEY.capabilities]: capabilities,
      [KEY.clientInfo]: { name: 'fake-host', version: '1' },
      ...meta,
    }
  }

  protected async initialize(): Promise<void> {
    const { revision = '2025-11-25', capabilities = {} } = this.options
    const clientInfo = { name: 'fake-host', version: '1' }
    const opening = this.call('initialize', { protocolVersion: revision, capabilities, clientInfo }, { id: 0 })
    if (this.options.cancelsOpening === true) this.notify('notifications/cancelled', { requestId: 0 })
    this.welcome = await opening
    if (this.options.hesitates !== true) this.notify('notifications/initialized')
  }

  protected async discover(): Promise<void> {
    this.welcome = await this.call('server/discover')
  }
}

const outcomeOf = (answer: () => JsonMap | Promise<JsonMap>): { result?: JsonMap | Promise<JsonMap>; error?: JsonMap } => {
  try {
    return { result: answer() }
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    return { error: { code: error.code, message: error.message } }
  }
}

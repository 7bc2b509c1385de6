/**
 * One host of the crowd and the turns it takes. Whatever it is asked, and whatever is reported to it, must carry its own name; what
 * it answers carries it, too, and must come back in the result of the call it belongs to.
 */
import type { Host, TransportRow } from '../fake-host.ts'
import { SessionHost } from '../fakes/http-hosts.ts'
import type { JsonMap, Message } from '../fakes/messages.ts'
import { send } from '../fakes/raw-http.ts'
import type { TestGateway } from '../gateway.ts'
import type { Asking } from './servers.ts'

/** What went wrong, in words. */
export type Report = (finding: string) => void

const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} }
/** The resource of each server that many watch at once. */
const COMMON = 'note://everyone'

export class Member {
  readonly id: string
  readonly row: TransportRow
  readonly #host: Host
  readonly #report: Report
  #nonces = 0
  questions = 0
  /** What it waits for, in words. */
  doing = ''

  private constructor(id: string, row: TransportRow, host: Host, report: Report) {
    this.id = id
    this.row = row
    this.#host = host
    this.#report = report
    for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list'] as const)
      host.answer(method, (params) => this.#answer(method, params))
  }

  static async join(id: string, row: TransportRow, gateway: TestGateway, report: Report): Promise<Member> {
    return new Member(id, row, await row.connect(gateway, { capabilities: CAPABILITIES }), report)
  }

  /** Calls `ask` of a server and answers until it is done; `givesUp`: a modern host leaves the first round unanswered. */
  async converse(server: string, asks: readonly Asking[], givesUp = false): Promise<void> {
    const nonce = this.#nonce()
    this.doing = `conversing with ${server}`
    const params: JsonMap = { name: `${server}__ask`, arguments: { nonce, asks } }
    let result = await this.#host.call('tools/call', params)
    while (result['resultType'] === 'input_required') {
      if (givesUp) return
      const { inputRequests, requestState } = result as { inputRequests: Record<string, Message>; requestState: string }
      const answered = Object.entries(inputRequests).map(([key, { method, params: asked = {} }]) => [
        key,
        this.#answer(method as Asking, asked),
      ])
      result = await this.#host.call('tools/call', { ...params, requestState, inputResponses: Object.fromEntries(answered) })
    }
    const expected = asks.map((method) => this.#words(method, nonce))
    const { answers = [] } = (result['structuredContent'] ?? {}) as { answers?: JsonMap[] }
    const got = answers.map((answer) => JSON.stringify(answer['content'] ?? answer['roots'] ?? answer))
    if (JSON.stringify(got) !== JSON.stringify(expected))
      this.#report(`${this.id} (${this.row.name}) at ${server}: ${nonce} came back as ${JSON.stringify(result)}`)
  }

  /** Watches a resource, has it touched, hears of it and watches no more; `isCommon`: one that others watch as well. */
  async watch(server: string, isCommon: boolean): Promise<void> {
    const original = isCommon ? COMMON : `note://${this.#nonce()}`
    const uri = `${server}+${original}`
    this.doing = `subscribing to ${uri}`
    const stop = await this.#subscribe(uri)
    const heard = stop.messages.until(
      ({ method, params }) => method === 'notifications/resources/updated' && params?.['uri'] === uri,
    )
    this.doing = `touching ${uri}`
    await this.#host.call('tools/call', { name: `${server}__touch`, arguments: { uri: original } })
    this.doing = `waiting to hear of ${uri}`
    await heard
    this.doing = `unsubscribing from ${uri}`
    await stop.unsubscribe()
    this.#inspect(stop.messages.entries)
  }

  /** Whatever is under way then is given up. */
  async leave(): Promise<void> {
    const host = this.#host
    this.#inspect(host.heard.entries)
    if (host instanceof SessionHost) await (await send(host.url, { method: 'DELETE', headers: host.headers() })).body
    await host[Symbol.asyncDispose]()
  }

  async #subscribe(uri: string) {
    const host = this.#host
    if (host.era === 'legacy') {
      await host.call('resources/subscribe', { uri })
      return { messages: host.heard, unsubscribe: async () => void (await host.call('resources/unsubscribe', { uri })) }
    }
    const listen = host.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } })
    const messages = this.row.name === 'modern stdio' ? host.heard : listen.messages
    await messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    return { messages, unsubscribe: async () => listen.cancel() }
  }

  /** Every update must be of something that this host watches. */
  #inspect(messages: Message[]): void {
    for (const { method, params } of messages.splice(0)) {
      const uri = String(params?.['uri'])
      if (method !== 'notifications/resources/updated' || uri.endsWith(COMMON) || uri.includes(`+note://${this.id}:`)) continue
      this.#report(`${this.id} (${this.row.name}) was told of ${uri}`)
    }
  }

  #answer(method: Asking, params: JsonMap): JsonMap {
    this.questions++
    const asked = method === 'roots/list' ? `${this.id}:` : JSON.stringify(params).match(/h\d+:\d+/)?.[0]
    if (asked?.startsWith(`${this.id}:`) !== true)
      this.#report(`${this.id} (${this.row.name}) was asked ${JSON.stringify(params)}`)
    const words = JSON.parse(this.#words(method, asked ?? '')) as JsonMap
    if (method === 'elicitation/create') return { action: 'accept', content: words }
    return method === 'roots/list' ? { roots: words } : { role: 'assistant', model: 'm', content: words }
  }

  #words(method: Asking, nonce: string): string {
    if (method === 'elicitation/create') return JSON.stringify({ nonce: `${nonce} of ${this.id}` })
    return JSON.stringify(
      method === 'roots/list' ? [{ uri: `file:///${this.id}` }] : { type: 'text', text: `${nonce} of ${this.id}` },
    )
  }

  #nonce(): string {
    return `${this.id}:${this.#nonces++}`
  }
}

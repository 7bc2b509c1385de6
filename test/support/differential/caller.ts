/** One random host: connects, listens for changes, says exchanges in its spelling, and answers what it is asked. */
import type { Host, HostOptions, Pending, TransportRow } from '../fake-host.ts'
import { SessionHost } from '../fakes/http-hosts.ts'
import { KEY, MODERN } from '../fakes/messages.ts'
import type { TestGateway } from '../gateway.ts'
import type { Endpoint, HostSetting } from './catalog.ts'
import type { Exchange } from './conversation.ts'
import { message, write } from './json.ts'
import type { Written } from './json.ts'
import { declarable } from './judge-questions.ts'
import { within } from './limits.ts'
import { answerText, METHOD_OF } from './scripts.ts'
import type { Script } from './scripts.ts'
import { member, readTree, valueOf } from './tree.ts'
import type { Tree } from './tree.ts'

/** The gateway, or what stands for one where hosts are connected to the server itself; and the server's key. */
export interface Target {
  readonly gateway: TestGateway
  readonly server: string
}

/** What an exchange came to, as the host saw it. */
export interface Said {
  readonly sent: string
  readonly answer: string
  readonly answeredId: string
  /** What came on streams of its own. */
  readonly notifications: () => readonly string[]
}

const CHANGED = /^notifications\/(tools|prompts|resources)\/list_changed$/

export class Caller {
  readonly capabilities: string
  readonly roots: string
  /** Of legacy hosts, once it is set. */
  level: string | undefined
  host: Host
  readonly endpoint: Endpoint
  readonly revision: string
  readonly #row: TransportRow
  readonly #scripts: ReadonlyMap<string, Script>
  #listen: Pending | undefined
  #nextId = 0
  /** Ids of requests that it gave up. */
  readonly #givenUp = new Set<string | number>()

  private constructor(
    row: TransportRow,
    { endpoint, revision, capabilities }: HostSetting,
    index: number,
    scripts: ReadonlyMap<string, Script>,
    host: Host,
  ) {
    this.endpoint = endpoint
    this.#row = row
    this.revision = revision
    this.capabilities = capabilities
    this.roots = `{"roots":[{"uri":"file:\\/\\/\\/host${index}","name":"caf\\u00e9","x":1.0}]}`
    this.#scripts = scripts
    this.host = host
  }

  static async connect(
    row: TransportRow,
    setting: HostSetting,
    index: number,
    to: Target,
    scripts: ReadonlyMap<string, Script>,
  ): Promise<Caller> {
    const declared = { ...setting, capabilities: declarable(setting.revision, setting.capabilities) }
    const caller = new Caller(row, declared, index, scripts, await open(row, declared, to))
    await caller.#prepare()
    return caller
  }

  /** Connects once more. */
  async reconnect(to: Target): Promise<void> {
    await this.leave()
    this.host = await open(this.#row, this, to)
    this.level = undefined
    await this.#prepare()
  }

  /** After a restart of the gateway: sessions over Streamable HTTP go on (B276), pipes and streams are opened again. */
  async return(to: Target): Promise<void> {
    if (this.host instanceof SessionHost) {
      await within('the stream of a session after a restart of the gateway', this.host.listen())
      return
    }
    if (this.#row.name !== 'modern Streamable HTTP') {
      this.host = await open(this.#row, this, to)
      this.level = undefined
    }
    await this.#prepare()
  }

  async leave(): Promise<void> {
    await within('the end of a host', this.host[Symbol.asyncDispose]())
  }

  /** How often each list was announced as changed, since the last `forget`. */
  announced(list: string): number {
    const messages = [...this.host.heard.entries, ...(this.#listen?.messages.entries ?? [])]
    return messages.filter(({ method = '' }) => CHANGED.exec(method)?.[1] === list).length
  }

  /** Forgets what it received. */
  forget(): void {
    this.host.heard.clear()
    this.host.texts.length = 0
    this.#listen?.messages.clear()
  }

  /** One exchange, with all rounds of questions. `onSent` is told what was sent. */
  async say(
    script: Script,
    exposed: string,
    tag: string | undefined,
    onSent: (sent: string, pending: Pending) => void,
  ): Promise<Said> {
    const { exchange } = script
    const start = this.host.texts.length
    const sent = this.#request(exchange, exposed, tag, [])
    let answeredId = exchange.id
    let pending = this.host.sendRaw(sent, idOf(exchange.id))
    onSent(sent, pending)
    const all = [pending]
    let answer = await answerOf(pending)
    for (let round = 0; round < 4 && isQuestion(answer); round++) {
      answeredId = String(1_000_000 + this.#nextId++)
      const retry = this.#request({ ...exchange, id: answeredId }, exposed, tag, this.#answers(answer))
      pending = this.host.sendRaw(retry, Number(answeredId))
      all.push(pending)
      answer = await answerOf(pending)
    }
    const notifications = (): string[] => [
      ...all.flatMap(({ texts }) => texts),
      ...this.host.texts.slice(start).filter((text) => isOf(script, text)),
    ]
    return { sent, answer, answeredId, notifications }
  }

  /** Gives a request up in the manner of its transport; the `params` it sent, if it sent any. */
  cancel(pending: Pending, params: Written): string | undefined {
    this.#givenUp.add(pending.id)
    if (this.#row.name === 'modern Streamable HTTP') {
      pending.cancel()
      return undefined
    }
    const text = write([['"requestId"', JSON.stringify(pending.id)], ...params])
    this.host.sendRaw(
      message([
        ['"method"', '"notifications/cancelled"'],
        ['"params"', text],
      ]),
      `cancel ${this.#nextId++}`,
    )
    return text
  }

  /**
   * The id for a request: the wanted one, or a number from `other` on. What comes late for a request that was given up is the host's
   * own to ignore where nothing stands between: there its id is not used again.
   */
  idFor(wanted: string, other: number): string {
    let id = wanted
    for (let next = other; this.endpoint === 'direct' && this.#givenUp.has(idOf(id)); next += 100) id = String(next)
    return id
  }

  /** All pages of one list, as text. */
  async list(method: string): Promise<string[]> {
    const pages: string[] = []
    let cursor: string | undefined
    do {
      const pending = this.host.begin(method, cursor === undefined ? {} : { cursor })
      const page = await answerOf(pending)
      pages.push(page)
      cursor = page.startsWith('{') ? member(member(readTree(page), 'result'), 'nextCursor')?.text : undefined
      if (cursor !== undefined) cursor = JSON.parse(cursor) as string
    } while (cursor !== undefined && pages.length < 50)
    return pages
  }

  /** A request of which nothing is judged; rejects if it is refused. */
  async call(method: string, params: Record<string, unknown>): Promise<void> {
    await within(`the answer to ${method} ${JSON.stringify(params)}`, this.host.call(method, params))
  }

  /** Subscribes to a resource; resolves once changes of it will come. `received` are the reports so far, `end` unsubscribes. */
  async subscribe(exposed: string): Promise<{ received: () => readonly string[]; end: () => Promise<void> }> {
    const { host } = this
    const start = host.texts.length
    const isUpdate = (text: string): boolean => text.includes('notifications/resources/updated')
    if (host.era === 'legacy') {
      await this.call('resources/subscribe', { uri: exposed })
      return {
        received: () => host.texts.slice(start).filter(isUpdate),
        end: () => this.call('resources/unsubscribe', { uri: exposed }),
      }
    }
    const listen = host.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [exposed] } })
    await this.#acknowledged(listen)
    return {
      received: () => [...listen.texts, ...host.texts.slice(start)].filter(isUpdate),
      end: async () => listen.cancel(),
    }
  }

  async #prepare(): Promise<void> {
    const { host } = this
    for (const method of new Set(Object.values(METHOD_OF))) host.answerText(method, (text) => this.#reply(readTree(text)))
    if (host.era === 'legacy') return
    const notifications = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
    this.#listen = host.begin('subscriptions/listen', { notifications })
    await this.#acknowledged(this.#listen)
  }

  async #acknowledged(listen: Pending): Promise<void> {
    const own = this.#row.name === 'modern Streamable HTTP' ? listen.messages : this.host.heard
    const acknowledged = own.until(
      ({ method, params }) =>
        method === 'notifications/subscriptions/acknowledged' &&
        (params?.['_meta'] as Record<string, unknown> | undefined)?.[KEY.subscriptionId] === listen.id,
    )
    const ended = listen.raw.then((answer) => {
      throw new Error(`subscriptions/listen was answered, and not acknowledged: ${answer}`)
    })
    await within('the acknowledgement of subscriptions/listen', Promise.race([acknowledged, ended]))
  }

  /** What a modern host adds to its retry: an answer to each question, and the state as it came. */
  #answers(answer: string): Written {
    const result = member(readTree(answer), 'result')
    const state = member(result, 'requestState')
    const responses: Written = (member(result, 'inputRequests')?.members ?? []).map(({ key, value }) => [
      JSON.stringify(key),
      this.#reply(value),
    ])
    return [['"inputResponses"', write(responses)], ...(state === undefined ? [] : [['"requestState"', state.text] as const])]
  }

  /** The answer to a question, as the script has it that the question names. */
  #reply(asked: Tree): string {
    const method = valueOf(member(asked, 'method'))
    const params = member(asked, 'params')?.text ?? '{}'
    const script = this.#scripts.get(/turn \d+/.exec(params)?.[0] ?? '')
    if (method === 'roots/list') {
      script?.asked.push({ params, answer: this.roots })
      return this.roots
    }
    const isUrl = valueOf(member(member(asked, 'params'), 'mode')) === 'url'
    const question = script?.exchange.reply.questions.find(({ kind }) => METHOD_OF[kind] === method && (kind === 'url') === isUrl)
    const answer = question === undefined ? '{"action":"cancel"}' : answerText(question)
    script?.asked.push({ params, answer })
    return answer
  }

  #request(exchange: Exchange, exposed: string, tag: string | undefined, answers: Written): string {
    const { method, id, arguments: given, more, meta, token, level, spelling } = exchange
    const own: Written = [
      ...(token === undefined ? [] : [['"progressToken"', token] as const]),
      ...(this.host.era === 'modern'
        ? ([
            [JSON.stringify(KEY.version).replaceAll('/', spelling.escapeEvery === 2 ? '\\/' : '/'), JSON.stringify(MODERN)],
            [JSON.stringify(KEY.capabilities), this.capabilities],
            ...(level === undefined ? [] : [[JSON.stringify(KEY.logLevel), JSON.stringify(level)] as const]),
          ] as const)
        : []),
    ]
    const whole = [...own, ...(meta ?? [])]
    const name = JSON.stringify(exposed)
    const isTemplate = exchange.target % 2 === 1
    const target: Written =
      method === 'completion/complete'
        ? [
            ['"ref"', isTemplate ? `{"type":"ref/resource","uri":${name},"x":1.0}` : `{"type":"ref\\/prompt","name":${name}}`],
            ['"argument"', '{"name":"n","value":"\\u0061"}'],
            ...(given === undefined ? [] : [['"context"', '{"arguments":{"a":"\\/"}}'] as const]),
          ]
        : [
            [method === 'resources/read' ? '"uri"' : '"name"', name],
            ...(given === undefined || method === 'resources/read' ? [] : [['"arguments"', given] as const]),
          ]
    const params: Written = [
      ...target,
      ...(whole.length === 0 && meta === undefined ? [] : [['"_meta"', write(whole, { ...spelling, escapeEvery: 0 })] as const]),
      ...answers,
      ...more,
      ...(tag === undefined ? [] : [['"x-turn"', JSON.stringify(tag)] as const]),
    ]
    return message(
      [
        ['"id"', id],
        ['"method"', JSON.stringify(method)],
        ['"params"', write(params, spelling)],
      ],
      spelling,
    )
  }
}

const open = (row: TransportRow, setting: HostSetting, to: Target): Promise<Host> =>
  within(`connecting a host of ${setting.revision} at ${setting.endpoint}`, connect(row, setting, to))

const connect = (row: TransportRow, { endpoint, revision, capabilities }: HostSetting, to: Target): Promise<Host> => {
  const options: HostOptions = {
    capabilities: JSON.parse(capabilities) as Record<string, unknown>,
    ...(row.era === 'legacy' && { revision }),
  }
  if (endpoint !== 'bridge') return row.connect(to.gateway, options)
  const { gateway, server } = to
  const path = `/servers/${server}/${row.name === 'HTTP+SSE' ? 'sse' : 'mcp'}`
  const bridge: TestGateway = { ...gateway, openPipe: (identity) => gateway.openPipe(identity, { server }) }
  return row.connect(bridge, { ...options, path })
}

/** On pipes and HTTP+SSE notifications come beside the answer; the token tells whose progress it is, the mark whose log message. */
const isOf = ({ exchange: { token }, mark }: Script, text: string): boolean => {
  const { method, params } = JSON.parse(text) as { method: string; params?: { progressToken?: unknown; logger?: unknown } }
  if (method === 'notifications/message') return String(params?.logger).endsWith(` ${mark}`)
  return method === 'notifications/progress' && token !== undefined && params?.progressToken === JSON.parse(token)
}

const idOf = (text: string): string | number => JSON.parse(text) as string | number

const isQuestion = (answer: string): boolean =>
  answer.includes('"input_required"') &&
  answer.startsWith('{') &&
  valueOf(member(member(readTree(answer), 'result'), 'resultType')) === 'input_required'

export const answerOf = (pending: { raw: Promise<string> }): Promise<string> =>
  Promise.race([pending.raw, late()]).catch((error: unknown) => String(error))

/** No answer within this is a hang: a finding, not a failure of the run. */
export const LATE_MS = 10_000
const late = (): Promise<string> =>
  new Promise((resolve) => setTimeout(() => resolve('nothing came within 10 s'), LATE_MS).unref())

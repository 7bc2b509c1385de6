/** The random server: offers a catalog, answers as scripts say, and can be restarted, changed and exchanged for one of the other era. */
import type { ServerResponse } from 'node:http'
import { everyFakeKind, FakeDownstream } from '../fake-downstream.ts'
import type { FakeKind } from '../fake-downstream.ts'
import { KEY, MODERN } from '../fakes/messages.ts'
import type { Turn } from '../fakes/turn.ts'
import { openFaultProxy } from '../fault-proxy.ts'
import type { FaultProxy } from '../fault-proxy.ts'
import { relayCommand } from '../relay.ts'
import { openHttpFront, openPipeFront } from './dual-fronts.ts'
import { definitionText, LIST_WORDS, LISTS } from './catalog.ts'
import type { Catalog, ListName } from './catalog.ts'
import type { Block, Exchange, Outcome } from './conversation.ts'
import { message, PLAIN, write } from './json.ts'
import type { Written } from './json.ts'
import { within } from './limits.ts'
import { METHOD_OF, questionText, TAG } from './scripts.ts'
import type { Script } from './scripts.ts'
import { member, readTree, valueOf } from './tree.ts'

const STATE = '"state \\u00e9 1.0"'

/** What a server speaks and over what; a dual one speaks the era of whom it meets. */
export type ServerKind = FakeKind | 'dual http' | 'dual stdio'
export const everyServerKind: readonly ServerKind[] = [...everyFakeKind, 'dual http', 'dual stdio']

/** What stands before the programs. */
interface Front extends AsyncDisposable {
  readonly port: number
}

export class RandomServer implements AsyncDisposable {
  readonly kind: ServerKind
  catalog: Catalog
  /** Exchanges under way, by mark. */
  readonly scripts = new Map<string, Script>()
  /** The program that serves now, and those that may take its place or, in front of a dual one, stand beside it. */
  #fake: FakeDownstream
  readonly #all: readonly FakeDownstream[]
  readonly #proxy: FaultProxy | undefined
  readonly #front: Front | undefined
  /** Requests that were given up, and those that are still held. */
  readonly #held = new Map<Turn, Script>()

  private constructor(
    kind: ServerKind,
    catalog: Catalog,
    all: readonly [FakeDownstream, ...FakeDownstream[]],
    before: { proxy?: FaultProxy; front?: Front } = {},
  ) {
    this.kind = kind
    this.catalog = catalog
    this.#fake = all[0]
    this.#all = all
    this.#proxy = before.proxy
    this.#front = before.front
    for (const each of this.#all) this.#handle(each)
  }

  static async start(kind: ServerKind, catalog: Catalog, isMovable: boolean): Promise<RandomServer> {
    const open = (of: FakeKind): Promise<FakeDownstream> =>
      FakeDownstream.start({ kind: of, tools: [], prompts: [], resources: [], templates: [] })
    if (kind === 'dual http' || kind === 'dual stdio') {
      const isHttp = kind === 'dual http'
      const modern = await open(isHttp ? 'modern http' : 'modern stdio')
      const legacy = await open(isHttp ? 'legacy http' : 'legacy stdio')
      const ports = { modern: portOf(modern), legacy: portOf(legacy) }
      const front = await (isHttp ? openHttpFront(ports) : openPipeFront(ports))
      return new RandomServer(kind, catalog, [modern, legacy], { front })
    }
    const serving = await open(kind)
    if (!isMovable || !kind.endsWith(' http')) return new RandomServer(kind, catalog, [serving])
    const other = await open(kind === 'modern http' ? 'legacy http' : 'modern http')
    for (const each of [serving, other]) refuseOtherEra(each)
    return new RandomServer(kind, catalog, [serving, other], { proxy: await openFaultProxy(portOf(serving)) })
  }

  /** The program that hosts of this era meet. */
  fakeFor(era: 'legacy' | 'modern'): FakeDownstream {
    return this.isDual ? (this.#all.find((each) => each.era === era) ?? this.#fake) : this.#fake
  }
  /** The one that the main link leads to. */
  get fake(): FakeDownstream {
    return this.#fake
  }
  /** Those that serve now. */
  get serving(): readonly FakeDownstream[] {
    return this.isDual ? this.#all : [this.#fake]
  }
  get isDual(): boolean {
    return this.kind.startsWith('dual')
  }
  get isHttp(): boolean {
    return this.kind.endsWith('http')
  }
  /** Where the gateway finds it. */
  get address(): FakeDownstream['address'] {
    if (this.#front === undefined) return this.#proxy === undefined ? this.#fake.address : { url: this.#urlAt(this.#proxy.port) }
    if (this.isHttp) return { url: this.#urlAt(this.#front.port) }
    return relayCommand(this.#front.port)
  }
  /** The program that this server began with serves it. */
  get isAsBegun(): boolean {
    return this.isDual || this.#fake.kind === this.kind
  }
  get isMovable(): boolean {
    return this.#proxy !== undefined
  }

  forget(): void {
    for (const each of this.#all) each.forget()
    this.scripts.clear()
  }

  #urlAt(port: number): URL {
    return new URL(`http://127.0.0.1:${port}/mcp`)
  }

  /** Offers something else; announces these. */
  offer(catalog: Catalog, changed: readonly ('tools' | 'prompts' | 'resources')[]): void {
    this.catalog = catalog
    for (const each of this.serving) for (const list of changed) each.changed(list)
  }

  /** Ends every process, session and stream. */
  async restart(): Promise<void> {
    await Promise.all(
      this.serving.map(async ({ kind, connections, listens }) => {
        if (kind === 'modern http') for (const { response } of listens) response?.destroy()
        else {
          const open = connections.filter(({ isOpen }) => isOpen)
          for (const connection of open) connection.drop()
          await Promise.all(open.map(({ closed }) => within(`the end of a connection of the ${kind} server`, closed)))
        }
      }),
    )
  }

  /** Serves the same URL by the other program from now on. */
  async changeEra(): Promise<void> {
    const { kind } = this.#fake
    const next = this.#all.find((each) => each.kind !== kind) ?? this.#fake
    if (this.#proxy === undefined) return
    this.#fake = next
    this.#proxy.target = portOf(next)
    this.#proxy.reset()
    // By then the gateway, in this process, has seen that its connections are gone.
    const other = fetch(`http://127.0.0.1:${this.#proxy.port}/other`, { method: 'POST', headers: { connection: 'close' } })
    await within(
      `the answer of the ${next.kind} server behind the proxy`,
      other.then(
        (reply) => reply.text(),
        () => undefined,
      ),
    )
  }

  /** Reports a change of a resource wherever it is subscribed to; the message, without what differs from one to the other. */
  report(uri: string, more: Written): string {
    const params: Written = [['"uri"', JSON.stringify(uri)], ...more]
    const method = 'notifications/resources/updated'
    for (const each of this.serving) {
      const connections = this.#subscriptions(each, uri).map(({ connection }) => connection)
      // Processes of their own all see the change.
      for (const connection of new Set(connections)) connection.say(note(method, params))
      for (const listen of each.listens.filter((turn) => watches(turn, uri))) {
        const meta = `{${JSON.stringify(KEY.subscriptionId)}:${JSON.stringify(listen.id)}}`
        listen.say(note(method, [...params, ['"_meta"', meta]]))
      }
    }
    return note(method, params)
  }

  /** Whether nothing is subscribed any more, so that the next one begins at nothing. */
  isUnwatched(uri: string): boolean {
    return this.serving.every((each) => {
      const ended = each.all('resources/unsubscribe').filter((turn) => turn.params['uri'] === uri)
      return ended.length >= this.#subscriptions(each, uri).length && !each.listens.some((turn) => watches(turn, uri))
    })
  }

  #subscriptions(each: FakeDownstream, uri: string): readonly Turn[] {
    return each.all('resources/subscribe').filter((turn) => turn.params['uri'] === uri)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of [this.#proxy, this.#front, ...this.#all])
      if (each !== undefined) await within(`the end of a part of the ${this.kind} server`, each[Symbol.asyncDispose]())
  }

  #handle(each: FakeDownstream): void {
    for (const list of LISTS) each.on(LIST_WORDS[list].method, (turn) => this.#list(each, list, turn))
    for (const method of ['tools/call', 'prompts/get', 'resources/read', 'completion/complete'])
      each.on(method, (turn) => this.#serve(each, turn))
    each.on('notifications/cancelled', (turn) => {
      if (each.era === 'modern') each.endListen(turn)
      const [held] = [...this.#held].filter(
        ([{ id, connection }]) => id === turn.params['requestId'] && connection === turn.connection,
      )
      if (held !== undefined) this.#cancelled(...held, member(readTree(turn.raw), 'params')?.text ?? '{}')
    })
  }

  /** What comes later is answered all the same: a gateway ignores that. */
  #cancelled(turn: Turn, script: Script, how: string): void {
    this.#held.delete(turn)
    script.cancelled = how
    turn.finish(
      message([
        ['"id"', JSON.stringify(turn.id)],
        ['"result"', '{"content":[],"too":"late"}'],
      ]),
    )
    script.notify()
  }

  #list(each: FakeDownstream, list: ListName, turn: Turn): void {
    const { perPage } = this.catalog
    const { cursor } = turn.params
    const page = typeof cursor === 'string' ? Number(/^page (\d+)$/.exec(cursor)?.[1] ?? 0) : 0
    const entries = this.catalog[list]
    const some = entries.slice(page * perPage, (page + 1) * perPage)
    const result: Written = [
      [JSON.stringify(LIST_WORDS[list].member), `[${some.map((entry) => definitionText(list, entry)).join(',')}]`],
      ...((page + 1) * perPage < entries.length ? ([['"nextCursor"', JSON.stringify(`page ${page + 1}`)]] as const) : []),
      ...(each.era === 'modern'
        ? ([
            ['"resultType"', '"complete"'],
            ['"ttlMs"', '60000'],
            ['"cacheScope"', '"public"'],
          ] as const)
        : []),
    ]
    turn.finish(
      message([
        ['"id"', JSON.stringify(turn.id)],
        ['"result"', write(result)],
      ]),
    )
  }

  async #serve(each: FakeDownstream, turn: Turn): Promise<undefined> {
    const script = this.#scriptOf(turn)
    if (script === undefined) {
      turn.fail(-32602, 'no script')
      return undefined
    }
    const { reply } = script.exchange
    const meta = (turn.params['_meta'] ?? {}) as Record<string, unknown>
    const declared = each.era === 'modern' ? meta[KEY.capabilities] : turn.connection.declared
    script.received.push({ text: turn.raw, declared: JSON.stringify(declared ?? {}) })
    script.notify()
    if (reply.outcome.kind === 'cancelled') return this.#hold(each, turn, script)
    if (reply.outcome.kind === 'dies' && script.received.length === 1) {
      if (each.kind !== 'modern http') turn.connection.drop()
      turn.response?.destroy()
      return undefined
    }
    if (!(await this.#isAsked(each, script, turn))) return undefined
    this.#report(script, turn, meta['progressToken'])
    script.answered = answerOf(each, script, turn.id)
    turn.finish(script.answered)
    return undefined
  }

  #scriptOf({ raw, message: { method } }: Turn): Script | undefined {
    const params = member(readTree(raw), 'params')
    const tag = member(params, TAG)
    if (tag !== undefined) return this.scripts.get(valueOf(tag) as string)
    const ref = member(params, 'ref')
    const name = valueOf(member(params, 'name') ?? member(params, 'uri') ?? member(ref, 'name') ?? member(ref, 'uri'))
    return [...this.scripts.values()].findLast(({ exchange, target }) => exchange.method === method && target === name)
  }

  #hold({ kind }: FakeDownstream, turn: Turn, script: Script): undefined {
    this.#held.set(turn, script)
    // Others are told by a notification, whatever becomes of the stream.
    if (kind !== 'modern http') return undefined
    void turn.closed.then(() => {
      if (this.#held.has(turn)) this.#cancelled(turn, script, 'closed')
    })
    return undefined
  }

  #report({ exchange: { reply }, mark }: Script, turn: Turn, token: unknown): void {
    if (token !== undefined)
      for (const { value, more } of reply.progress)
        turn.say(
          note('notifications/progress', [['"progressToken"', JSON.stringify(token)], ['"progress"', String(value)], ...more]),
        )
    for (const { level, more } of reply.logs)
      turn.say(
        note('notifications/message', [
          ['"level"', JSON.stringify(level)],
          ['"logger"', JSON.stringify(`log ${mark}`)],
          ['"data"', '1'],
          ...more,
        ]),
      )
  }

  /** Asks in the manner of the server's era; false: the answers come with a retry. */
  async #isAsked(each: FakeDownstream, script: Script, turn: Turn): Promise<boolean> {
    const { exchange, mark, questions: done } = script
    const { questions } = exchange.reply
    if (questions.length === 0) return true
    const isLegacy = each.era === 'legacy'
    const texts = questions.map((question) => questionText(question, mark, isLegacy))
    if (isLegacy) {
      for (const [at, question] of questions.entries()) {
        const { id } = turn.connection.expectAnswer()
        const params = texts[at] ?? '{}'
        turn.say(
          message([
            ['"id"', String(id)],
            ['"method"', JSON.stringify(METHOD_OF[question.kind])],
            ['"params"', params],
          ]),
        )
        const { raw } = await each.journal.until(
          (got) => got.message.method === undefined && got.message.id === id && got.connection === turn.connection,
        )
        const answer = readTree(raw)
        done.push({ question, params, answer: (member(answer, 'result') ?? member(answer, 'error') ?? answer).text })
      }
      return true
    }
    const params = member(readTree(turn.raw), 'params')
    const responses = member(params, 'inputResponses')
    if (responses === undefined) {
      const requests: Written = questions.map(({ kind }, at) => [
        `"k${at}"`,
        `{"method":${JSON.stringify(METHOD_OF[kind])},"params":${texts[at] ?? '{}'}}`,
      ])
      const result = write([
        ['"resultType"', '"input_required"'],
        ['"inputRequests"', write(requests)],
        ['"requestState"', STATE],
      ])
      turn.finish(
        message([
          ['"id"', JSON.stringify(turn.id)],
          ['"result"', result],
        ]),
      )
      return false
    }
    const state = member(params, 'requestState')
    questions.forEach((question, at) =>
      done.push({
        question,
        params: texts[at] ?? '{}',
        answer:
          valueOf(state) === JSON.parse(STATE)
            ? (member(responses, `k${at}`)?.text ?? '"nothing"')
            : JSON.stringify(`the state ${state?.text}`),
      }),
    )
    return true
  }
}

const portOf = ({ address }: FakeDownstream): number => Number('url' in address ? address.url.port : address.args.at(-1))

/** Refuses what is not of its era, as the official SDKs do where they serve one era alone. */
const refuseOtherEra = (downstream: FakeDownstream): void => {
  const isModernServer = downstream.era === 'modern'
  const refuse = (response: ServerResponse, code: number, data?: unknown): boolean => {
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message: 'refused', data } }))
    return true
  }
  downstream.intercept = (request, response, body) => {
    const isModern = request.headers['mcp-method'] !== undefined
    if (request.method !== 'POST' || isModern === isModernServer || request.headers['mcp-session-id'] !== undefined)
      return isModernServer && !isModern && refuse(response, -32022, { supported: [MODERN] })
    if (/"method":"(initialize|notifications)/.test(body) && !isModernServer) return false
    return refuse(response, -32000)
  }
}

const watches = ({ params }: Turn, uri: string): boolean => {
  const { resourceSubscriptions } = (params['notifications'] ?? {}) as { resourceSubscriptions?: readonly string[] }
  return resourceSubscriptions?.includes(uri) === true
}

const note = (method: string, params: Written): string =>
  message([
    ['"method"', JSON.stringify(method)],
    ['"params"', write(params)],
  ])

const answerOf = ({ era }: FakeDownstream, { exchange, mark }: Script, id: string | number): string => {
  const { outcome, spelling } = exchange.reply
  const body: Written =
    outcome.kind === 'error'
      ? [
          [
            '"error"',
            write(
              [
                ['"code"', String(outcome.code)],
                ['"message"', outcome.message],
                ...(outcome.data === undefined ? [] : [['"data"', outcome.data] as const]),
              ],
              spelling,
            ),
          ],
        ]
      : [['"result"', write(resultOf(era, exchange, mark, outcome.kind === 'result' ? outcome : undefined), spelling)]]
  return message([['"id"', JSON.stringify(id)], ...body], spelling)
}

const resultOf = (
  era: 'legacy' | 'modern',
  { method }: Exchange,
  mark: string,
  outcome: (Outcome & { kind: 'result' }) | undefined,
): Written => {
  const { blocks, structured, isError, more = [], meta } = outcome ?? {}
  const list = (blocks ?? []).map(blockText)
  const optional = (key: string, value: string | undefined): Written => (value === undefined ? [] : [[key, value]])
  const content: Written =
    method === 'tools/call'
      ? [
          ...(blocks === undefined && outcome !== undefined ? [] : ([['"content"', `[${list.join(',')}]`]] as const)),
          ...optional('"structuredContent"', structured),
          ...optional('"isError"', isError === undefined ? undefined : String(isError)),
        ]
      : method === 'prompts/get'
        ? [['"messages"', `[${list.map((text) => `{"role":"user","content":${text}}`).join(',')}]`]]
        : method === 'resources/read'
          ? [['"contents"', `[${(blocks ?? []).map(contentText).join(',')}]`]]
          : [['"completion"', '{"values":["\\u0061","b\\/"],"total":2.0,"x":{}}']]
  return [
    ...(era === 'modern' ? ([['"resultType"', '"complete"']] as const) : []),
    ...(era === 'modern' && method === 'resources/read'
      ? ([
          ['"ttlMs"', '1000'],
          ['"cacheScope"', '"public"'],
        ] as const)
      : []),
    ...content,
    ...optional('"_meta"', meta && write(meta, more.length > 0 ? { ...PLAIN, space: ' ' } : PLAIN)),
    ...more,
    [`"${TAG}"`, JSON.stringify(mark)],
  ]
}

const blockText = (block: Block): string => {
  const { type, more } = block
  const own: Written =
    type === 'resource_link'
      ? [
          ['"uri"', JSON.stringify(block.uri)],
          ['"name"', '"n"'],
        ]
      : type === 'resource'
        ? [['"resource"', write([['"uri"', JSON.stringify(block.uri)], ['"text"', '"t"'], ...more])]]
        : type === 'text'
          ? [['"text"', '"\\u0041 \\"quoted\\" text"']]
          : [
              ['"data"', '"QUJD"'],
              ['"mimeType"', '"audio/wav"'],
            ]
  return write([['"type"', JSON.stringify(type)], ...own, ...more])
}

const contentText = (block: Block): string =>
  write([['"uri"', JSON.stringify('uri' in block ? block.uri : 'file:///one')], ['"text"', '"t"'], ...block.more])

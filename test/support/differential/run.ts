/** Says random conversations through a gateway: a few hosts and one random server per stage, as many conversations as are asked for. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfiguration } from '../../../src/config/load.ts'
import type { ServerOptions } from '../../../src/downstream/options.ts'
import { fake, FakeDownstream } from '../fake-downstream.ts'
import { everyTransport } from '../fake-host.ts'
import type { Pending, TransportRow } from '../fake-host.ts'
import { MODERN } from '../fakes/messages.ts'
import { startGateway } from '../gateway.ts'
import type { TestGateway } from '../gateway.ts'
import { STATE_FOLDERS } from '../memory-folder.ts'
import { Caller, LATE_MS } from './caller.ts'
import type { Said, Target } from './caller.ts'
import { definitionText, entryOf, exposedId, LIST_WORDS, LISTS, shown } from './catalog.ts'
import type { Catalog, Curating, Endpoint, ListName, Setting } from './catalog.ts'
import type { Conversation, Exchange, Step } from './conversation.ts'
import { write } from './json.ts'
import type { Written } from './json.ts'
import { judgeList } from './judge-lists.ts'
import { expectedLogs, judgeUpdate } from './judge-notifications.ts'
import { fateOf } from './judge-questions.ts'
import { judge } from './judge.ts'
import { within } from './limits.ts'
import { areAlone } from './model.ts'
import type { Cell, Observed } from './model.ts'
import type { Script } from './scripts.ts'
import { everyServerKind, RandomServer } from './server.ts'
import type { ServerKind } from './server.ts'

export interface Pair {
  readonly name: string
  readonly host: TransportRow
  readonly kind: ServerKind
  /** That hosts of this transport can speak. */
  readonly revisions: readonly string[]
}

const HEADER_MISMATCH = -32020
/** Of the gateway's log, with a finding about what was not answered. */
const LOG_LINES = 12
const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']

/** Every transport of hosts before every kind of server. */
export const everyPair: readonly Pair[] = everyTransport.flatMap((host) =>
  everyServerKind.map((kind) => ({
    name: `${host.name} × ${kind}`,
    host,
    kind,
    // Streamable HTTP began with 2025-03-26; hosts that say less over it do not exist.
    revisions: host.era === 'modern' ? [MODERN] : host.name === 'legacy Streamable HTTP' ? LEGACY.slice(1) : LEGACY,
  })),
)

/** Where hosts of a pair can be connected; to the server itself where both have the same transport. */
export const endpointsOf = ({ host, kind }: Pair): readonly Endpoint[] =>
  (DIRECT[host.name] ?? []).includes(kind) ? ['merged', 'bridge', 'direct'] : ['merged', 'bridge']

const DIRECT: Readonly<Record<string, readonly ServerKind[]>> = {
  'legacy Streamable HTTP': ['legacy http', 'dual http'],
  'HTTP+SSE': ['legacy sse'],
  'modern Streamable HTTP': ['modern http', 'dual http'],
}

/** Of the second server, which is only there so that there are two. */
const OTHERS: Readonly<Record<ListName, readonly string[]>> = {
  tools: ['other__idle'],
  prompts: [],
  resources: [],
  templates: [],
}

/** A gateway between a few hosts and one random server, ready for conversations. */
export class Stage implements AsyncDisposable {
  readonly #pair: Pair
  readonly #setting: Setting
  readonly #server: RandomServer
  readonly #idle: FakeDownstream
  readonly #stateDir: string
  #gateway: TestGateway
  #callers: readonly Caller[] = []
  #turns = 0
  #hasChangedEra = false
  #offeredMs = -Infinity
  /** Requests that were given up: none may be answered. */
  readonly #given: { readonly text: string; answer: string | undefined }[] = []

  private constructor(
    pair: Pair,
    setting: Setting,
    server: RandomServer,
    idle: FakeDownstream,
    stateDir: string,
    gateway: TestGateway,
  ) {
    this.#pair = pair
    this.#setting = setting
    this.#server = server
    this.#idle = idle
    this.#stateDir = stateDir
    this.#gateway = gateway
  }

  static async open(pair: Pair, setting: Setting): Promise<Stage> {
    const server = await RandomServer.start(pair.kind, setting.catalog, setting.isMovable)
    const idle = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['idle'] }))
    const stateDir = mkdtempSync(join(STATE_FOLDERS, 'trunkline-differential-'))
    const gateway = await start(server, idle, setting, stateDir, 0)
    const stage = new Stage(pair, setting, server, idle, stateDir, gateway)
    try {
      stage.#callers = await Promise.all(
        setting.hosts.map((host, index) => Caller.connect(pair.host, host, index, stage.#reach(host.endpoint), server.scripts)),
      )
    } catch (error) {
      throw new Error(`${String(error)}; ${stage.#stateOf()}`, { cause: error })
    }
    return stage
  }

  #reach(endpoint: Endpoint): Target {
    const { address } = this.#server
    const server = this.#setting.prefix
    if (endpoint !== 'direct' || !('url' in address)) return { gateway: this.#gateway, server }
    // A host needs nothing of a gateway but its address.
    return { gateway: { ...this.#gateway, url: address.url }, server }
  }

  /** Says one conversation, as much of it as can be begun before `endMs`; what was not as the model says, one sentence each. */
  async say({ steps }: Conversation, endMs = Infinity): Promise<string[]> {
    const found: string[] = []
    await this.#attempt('before the first step', found, this.#reset(found))
    for (const [at, step] of steps.entries()) {
      if (found.length > 0 || performance.now() > endMs) break
      await this.#attempt(`in step ${at + 1} of ${steps.length} (${step.kind})`, found, this.#step(step, found))
    }
    for (const { text, answer } of this.#given.splice(0))
      if (answer !== undefined) found.push(`a request that was cancelled was answered: ${text} ${answer}`)
    return found
  }

  /** What fails, or never ends, is a finding like any other. */
  async #attempt(where: string, found: string[], step: Promise<void>): Promise<void> {
    try {
      await step
    } catch (error) {
      found.push(`${where}: ${String(error)}; ${this.#stateOf()}`)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const caller of this.#callers) await caller.leave()
    await this.#stopGateway()
    await this.#server[Symbol.asyncDispose]()
    await this.#idle[Symbol.asyncDispose]()
    rmSync(this.#stateDir, { recursive: true, force: true })
  }

  /** Back to the setting: every conversation finds the same world. */
  async #reset(found: string[]): Promise<void> {
    if (!this.#server.isAsBegun) await this.#changeEra()
    if (this.#server.catalog !== this.#setting.catalog) await this.#offer(this.#setting.catalog, found)
    if (this.#pair.host.era === 'legacy' && this.#callers.some(({ level }) => level !== undefined && level !== 'debug'))
      await this.#setLevel('debug')
    this.#server.forget()
    for (const caller of this.#callers) caller.forget()
  }

  async #step(step: Step, found: string[]): Promise<void> {
    switch (step.kind) {
      case 'exchanges':
        return this.#exchanges(step, found)
      case 'lists':
        return this.#lists(found)
      case 'offer':
        return this.#offer(step.catalog, found)
      case 'update':
        return this.#update(step, found)
      case 'level':
        return this.#setLevel(step.level)
      case 'server restarts':
        return this.#restartServer()
      case 'gateway restarts':
        return this.#restartGateway()
      case 'next conversation':
        return this.#reset(found)
      case 'era changes':
        return this.#server.isMovable ? this.#changeEra(step.isBrief) : undefined
    }
  }

  #cellOf({ endpoint, revision }: Caller): Cell {
    const { host } = this.#pair
    return {
      endpoint,
      hostEra: host.era,
      hostRevision: revision,
      serverEra: this.#server.fakeFor(host.era).era,
      isServerHttp: this.#server.isHttp,
      isHostHttp: host.name.endsWith('HTTP'),
      prefix: endpoint === 'merged' ? this.#setting.prefix : '',
      catalog: this.#server.catalog,
      curating: this.#setting.curating,
    }
  }

  async #exchanges({ isConcurrent, exchanges }: Step & { kind: 'exchanges' }, found: string[]): Promise<void> {
    const used = new Map<Caller, Set<string>>()
    const scripts = exchanges.map((exchange, at): { caller: Caller; script: Script } => {
      const caller = this.#callers[exchange.host % this.#callers.length] ?? this.#callers[0]
      // Requests of one host at once need different ids and tokens; those of different hosts may have the same.
      const mine = used.get(caller!) ?? new Set()
      const isFirst = mine.size === 0
      used.set(caller!, mine.add(exchange.id))
      const distinct: Exchange = {
        ...exchange,
        id: caller!.idFor(isFirst ? exchange.id : String(100 + at), 100 + at),
        token: exchange.token === undefined || isFirst ? exchange.token : `"token ${at}"`,
      }
      return { caller: caller!, script: this.#script(caller!, distinct, isConcurrent) }
    })
    const targets = scripts.map(({ script: { exchange, target } }) => `${exchange.method} ${target}`)
    const isAmbiguous = isConcurrent && new Set(targets).size < targets.length
    const begin = ({ caller, script }: { caller: Caller; script: Script }): Promise<void> =>
      this.#exchange(caller, script, isAmbiguous, !isConcurrent, found)
    if (isConcurrent) await Promise.all(scripts.map(begin))
    else for (const each of scripts) await begin(each)
  }

  #script(caller: Caller, exchange: Exchange, isConcurrent: boolean): Script {
    const mark = `turn ${this.#turns++}`
    const { outcome, questions } = exchange.reply
    // A process that ends takes other calls with it, and a host without a gateway loses its session.
    const cannotDie = isConcurrent || caller.endpoint === 'direct'
    const settled =
      outcome.kind === 'dies' && cannotDie ? { kind: 'error' as const, code: 1, message: '"no"', data: undefined } : outcome
    const isPlain = settled.kind === 'cancelled' || settled.kind === 'dies' || exchange.method === 'completion/complete'
    const asks = isPlain
      ? []
      : questions.filter(
          (question, at) =>
            this.#mayAsk(caller, question.kind) && questions.findIndex(({ kind }) => methodsMeet(kind, question.kind)) === at,
        )
    const reply = { ...exchange.reply, outcome: settled, questions: asks }
    // A request that may be sent again because of its headers (B221) would say everything twice.
    const isRepeated = settled.kind === 'error' && settled.code === HEADER_MISMATCH
    return {
      exchange: { ...exchange, reply: isRepeated ? { ...reply, questions: [], progress: [], logs: [] } : reply },
      mark,
      target: this.#targetOf(exchange),
      received: [],
      answered: undefined,
      questions: [],
      asked: [],
      cancelled: undefined,
      notify: () => undefined,
    }
  }

  /** A modern server may ask only what was declared to it; a legacy one asks what it likes. */
  #mayAsk(caller: Caller, kind: Exchange['reply']['questions'][number]['kind']): boolean {
    const cell = this.#cellOf(caller)
    const declared = { ...cell, hostEra: 'modern', hostRevision: MODERN } as const
    return cell.serverEra === 'legacy' || fateOf(declared, caller.capabilities, kind) === 'asked'
  }

  #targetOf({ method, target }: Exchange): string {
    const { catalog } = this.#server
    const list =
      method === 'tools/call'
        ? catalog.tools
        : method === 'resources/read'
          ? catalog.resources
          : method === 'completion/complete' && target % 2 === 1
            ? catalog.templates
            : catalog.prompts
    return list[target % list.length]?.id ?? ''
  }

  #exposedOf({ prefix }: Cell, { method, target }: Exchange, original: string): string {
    const list: ListName =
      method === 'tools/call'
        ? 'tools'
        : method === 'resources/read'
          ? 'resources'
          : method === 'completion/complete' && target % 2 === 1
            ? 'templates'
            : 'prompts'
    return exposedId(prefix, this.#setting.curating, list, original)
  }

  async #exchange(caller: Caller, script: Script, isTagged: boolean, isAlone: boolean, found: string[]): Promise<void> {
    const cell = this.#cellOf(caller)
    const { exchange, target, mark } = script
    this.#server.scripts.set(mark, script)
    const exposed = this.#exposedOf(cell, exchange, target)
    const isHidden = cell.curating.hidden.includes(target)
    const level = cell.hostEra === 'modern' ? exchange.level : caller.level
    const observe = (said: Partial<Said> & { sent: string }, cancellation: Observed['cancellation']): Observed => ({
      ...script,
      capabilities: caller.capabilities,
      roots: caller.roots,
      sent: said.sent,
      notifications: said.notifications?.() ?? [],
      isAlone,
      answer: said.answer ?? '',
      answeredId: said.answeredId ?? '0',
      level,
      cancellation,
    })
    if (exchange.reply.outcome.kind === 'cancelled' && !isHidden) {
      const { sent, cancellation } = await this.#cancel(caller, script, exposed, isTagged ? mark : undefined)
      found.push(...judge(cell, observe({ sent }, cancellation)))
      return
    }
    const link = this.#link
    const said = await caller.say(script, exposed, isTagged ? mark : undefined, () => undefined)
    // It may have been the main link's process or session; by now that is known.
    if (exchange.reply.outcome.kind === 'dies' && this.#link !== link) await this.#settled()
    if (!said.answer.startsWith('{'))
      return void found.push(`${said.sent} was not answered: ${said.answer}; ${this.#progressOf(script)}`)
    if (isAlone && !isHidden && script.answered !== undefined) {
      const expected = expectedLogs(cell, level, exchange).length
      await eventually(
        () => said.notifications().filter((text) => text.includes('notifications/message')).length >= expected,
        2_000,
      )
    }
    found.push(...judge(cell, observe(said, undefined)))
  }

  async #stopGateway(): Promise<void> {
    await within('the end of the gateway', this.#gateway[Symbol.asyncDispose]())
  }

  /** How far an exchange came that was not answered: in which part of the way to look for it. */
  #progressOf({ received, questions, asked, answered, exchange, mark }: Script): string {
    return [
      `${mark}: the server received it ${received.length} times`,
      `had answers to ${questions.length} of ${exchange.reply.questions.length} questions`,
      `${asked.length} questions reached the host`,
      answered === undefined ? 'the server did not answer' : 'the server answered',
      this.#stateOf(),
    ].join(', ')
  }

  /** What the gateway has under way, and what it said last. */
  #stateOf(): string {
    const downstream = this.#gateway.running.fleet.get(this.#setting.prefix)
    const log = this.#gateway.log.entries.slice(-LOG_LINES)
    return [
      `the gateway has ${this.#gateway.running.front.inFlight} requests in flight, ${downstream?.inFlight} at the server, ${downstream?.linkCount} links`,
      `the server is ${downstream?.health$.value.state}\n${log.map(({ text, facts }) => `${text} ${JSON.stringify(facts)}`).join('\n')}`,
    ].join(', ')
  }

  async #cancel(
    caller: Caller,
    script: Script,
    exposed: string,
    tag: string | undefined,
  ): Promise<{ sent: string; cancellation: Observed['cancellation'] }> {
    const { outcome } = script.exchange.reply
    const { reason, more, meta } = outcome.kind === 'cancelled' ? outcome : { reason: undefined, more: [], meta: undefined }
    const params: Written = [
      ...(reason === undefined ? [] : [['"reason"', reason] as const]),
      ...(meta === undefined ? [] : [['"_meta"', write(meta)] as const]),
      ...more,
    ]
    let sent = ''
    let pending: Pending | undefined
    void caller.say(script, exposed, tag, (text, begun) => {
      sent = text
      pending = begun
    })
    const given: { text: string; answer: string | undefined } = { text: sent, answer: undefined }
    // What comes too late is the host's own to ignore where nothing stands between.
    if (caller.endpoint !== 'direct') this.#given.push(given)
    pending?.raw.then(
      (answer) => (given.answer = answer),
      () => undefined,
    )
    await happens(script, () => script.received.length > 0)
    const text = pending && caller.cancel(pending, params)
    await happens(script, () => script.cancelled !== undefined)
    return { sent, cancellation: { sent: text, received: script.cancelled } }
  }

  async #lists(found: string[]): Promise<void> {
    await Promise.all(
      this.#callers.map(async (caller) => {
        for (const list of LISTS) {
          const before = caller.announced(LIST_WORDS[list].changed)
          const faults = await this.#list(caller, list)
          // Pages on both sides of a change are of two lists: a host that is told of it meanwhile reads again.
          const isTold = (): boolean => caller.announced(LIST_WORDS[list].changed) > before
          const isOld = faults.length > 0 && (await eventually(isTold, LATE_MS))
          found.push(...(isOld ? await this.#list(caller, list) : faults))
        }
      }),
    )
  }

  async #list(caller: Caller, list: ListName): Promise<string[]> {
    const faults: string[] = []
    const pages = await caller.list(LIST_WORDS[list].method)
    const others = caller.endpoint === 'merged' ? OTHERS[list] : []
    judgeList(this.#cellOf(caller), list, pages, this.#setting.pageMaxItems, others, (text) => faults.push(text))
    return faults
  }

  /** B128, B129: refreshed first, announced once to each host, and only where what it is shown differs. */
  async #offer(catalog: Catalog, found: string[]): Promise<void> {
    const before = this.#server.catalog
    const { curating } = this.#setting
    const kinds = ['tools', 'prompts', 'resources'] as const
    const differing = (text: (from: Catalog, list: ListName) => string): readonly (typeof kinds)[number][] =>
      kinds.filter((kind) =>
        LISTS.some((list) => LIST_WORDS[list].changed === kind && text(before, list) !== text(catalog, list)),
      )
    const must = differing((from, list) => visible(from, curating, list))
    const announced = differing((from, list) => from[list].map((entry) => definitionText(list, entry)).join())
    // What is between a host and its server alone is announced as the server announces it (B277).
    const mustOf = (caller: Caller): readonly string[] => (areAlone(this.#cellOf(caller)) ? announced : must)
    // A change that comes while lists are being read may be told twice: half of them were read before it.
    const isLone = performance.now() - this.#offeredMs > 3_000 && !this.#isReadingLegacy
    this.#offeredMs = performance.now()
    const counts = this.#callers.map((caller) => Object.fromEntries(kinds.map((kind) => [kind, caller.announced(kind)])))
    this.#server.offer(catalog, announced)
    const isTold = (): boolean =>
      this.#callers.every((caller, at) => mustOf(caller).every((kind) => caller.announced(kind) > (counts[at]?.[kind] ?? 0)))
    if (!(await eventually(isTold, LATE_MS))) found.push(`a change of ${announced.join(' and ')} was not announced to every host`)
    this.#callers.forEach((caller, at) => {
      for (const kind of kinds) {
        const times = caller.announced(kind) - (counts[at]?.[kind] ?? 0)
        if (isLone && times > (announced.includes(kind) ? 1 : 0)) found.push(`a change of ${kind} was announced ${times} times`)
      }
    })
  }

  /** 3.8 (B131, B132, B168). */
  async #update({ target, more }: Step & { kind: 'update' }, found: string[]): Promise<void> {
    const { resources } = this.#server.catalog
    const original = resources[target % resources.length]?.id ?? ''
    const exposedTo = (caller: Caller): string =>
      exposedId(this.#cellOf(caller).prefix, this.#setting.curating, 'resources', original)
    const subscriptions = await Promise.all(
      this.#callers.map(async (caller) => ({ caller, ...(await caller.subscribe(exposedTo(caller))) })),
    )
    const sent = this.#server.report(original, more)
    await eventually(() => subscriptions.every(({ received }) => received().length > 0), LATE_MS)
    // Subscriptions that meet the dialing of another era are told as after a loss, in Trunkline's own words.
    for (const { caller, received } of this.#hasChangedEra ? [] : subscriptions)
      judgeUpdate(exposedTo(caller), sent, received(), (text) => found.push(text))
    await Promise.all(subscriptions.map(({ end }) => end()))
    if (!(await eventually(() => this.#server.isUnwatched(original), LATE_MS))) found.push(`${original} is still watched`)
    for (const each of this.#server.serving) each.forget()
  }

  async #setLevel(level: string): Promise<void> {
    if (this.#pair.host.era === 'modern') return
    for (const caller of this.#callers) {
      await caller.call('logging/setLevel', { level })
      caller.level = level
    }
  }

  async #restartServer(): Promise<void> {
    const before = this.#link
    await this.#server.restart()
    // The main link is opened again at once; by then it is known of the others that they are gone, or it will be found out.
    if (this.#server.fake.kind !== 'modern http') await eventually(() => this.#link !== before, LATE_MS)
    await this.#settled()
    for (const caller of this.#callers) if (caller.endpoint === 'direct') await caller.reconnect(this.#reach('direct'))
  }

  /** What a server of both eras lists to legacy hosts is read once the first of them calls. */
  get #isReadingLegacy(): boolean {
    const downstream = this.#gateway.running.fleet.get(this.#setting.prefix)
    return this.#server.isDual && this.#pair.host.era === 'legacy' && downstream?.offers.legacy.inventory$.value === undefined
  }

  get #link(): unknown {
    return this.#gateway.running.fleet.get(this.#setting.prefix)?.link
  }

  async #restartGateway(): Promise<void> {
    const port = Number(this.#gateway.url.port)
    const callers = this.#callers.filter(({ endpoint }) => endpoint !== 'direct')
    for (const caller of callers) if (!this.#pair.host.name.endsWith('HTTP')) await caller.leave()
    await this.#stopGateway()
    this.#gateway = await start(this.#server, this.#idle, this.#setting, this.#stateDir, port)
    await Promise.all(callers.map((caller) => caller.return(this.#reach(caller.endpoint))))
    await this.#settled()
  }

  /** B268: from the next call on. */
  async #changeEra(isBrief = false): Promise<void> {
    this.#hasChangedEra = true
    // What was said before must not answer the calls in vain, nor hold them.
    this.#server.scripts.clear()
    await this.#server.changeEra()
    await Promise.all(this.#callers.slice(0, isBrief ? undefined : 1).map((caller) => this.#callInVain(caller)))
    if (isBrief) return this.#changeEra()
    await this.#settled()
  }

  /** Whatever has changed is found out by a call; this one has no script, so the server refuses it. */
  async #callInVain(caller: Caller): Promise<void> {
    const [tool] = shown(this.#server.catalog, this.#setting.curating, 'tools')
    const name = exposedId(this.#cellOf(caller).prefix, this.#setting.curating, 'tools', tool?.id ?? 'none')
    const refused = caller.host.begin('tools/call', { name }).response.catch(() => undefined)
    await within(`the answer to the call in vain of ${name}`, refused)
  }

  /** Resolves when the gateway has a server of the present era again. */
  async #settled(): Promise<void> {
    const { era } = this.#server.fake
    await eventually(() => {
      const downstream = this.#gateway.running.fleet.get(this.#setting.prefix)
      return downstream?.health$.value.state === 'healthy' && downstream.link?.era === era
    }, LATE_MS)
  }
}

/** Two questions of one exchange are told apart by their methods, dialogs by their modes as well. */
const methodsMeet = (one: string, other: string): boolean => {
  const group = (kind: string): string =>
    ['form', 'titled', 'several'].includes(kind) ? 'form' : ['sampling', 'tools', 'context'].includes(kind) ? 'sampling' : kind
  return group(one) === group(other)
}

/** What hosts see for certain: members that the configuration replaces may change unseen. */
const visible = (catalog: Catalog, curating: Curating, list: ListName): string =>
  shown(catalog, curating, list)
    .map((entry) => {
      const edit = list === 'tools' ? curating.edits.find(({ tool }) => tool === entry.id) : undefined
      const replaced = edit === undefined ? [] : ['"title"', '"description"', '"annotations"', '"inputSchema"']
      return definitionText(list, { ...entry, members: entry.members.filter(([key]) => !replaced.includes(key)) })
    })
    // Two readings that differ in order alone are one reading (3.22).
    .toSorted()
    .join()

const start = async (
  server: RandomServer,
  idle: FakeDownstream,
  setting: Setting,
  stateDir: string,
  port: number,
): Promise<TestGateway> => {
  const { address, kind } = server
  const options = {
    ...(await configured(setting)),
    // Not the subject; what is dropped over a limit would look like a loss.
    limits: { maxLogMessages: { amount: 1e9, periodMs: 1_000, text: '1000000000/s' } },
  }
  const standIn = { address, kind, forget: () => server.forget() } as unknown as FakeDownstream
  const started = startGateway({
    servers: {},
    fakes: new Map([
      [setting.prefix, standIn],
      ['other', idle],
    ]),
    options: { [setting.prefix]: options },
    gateway: { pageMaxItems: setting.pageMaxItems },
    host: { addresses: [{ host: '127.0.0.1', port }] },
    stateDir,
  })
  return within('the start of the gateway', started)
}

/** What the YAML of the configuration comes to, for one server. */
const configured = async ({ curating, prefix }: Setting): Promise<Pick<ServerOptions, 'curation' | 'alias'>> => {
  const value = { servers: { [prefix]: { command: 'x', ...entryOf(curating) } } }
  const { servers } = await loadConfiguration({ files: [], value }, { env: {}, cwd: '/', home: '/' })
  const { curation, alias } = servers[0]!
  return { curation, alias }
}

/** Waits until something holds; false if it never does. */
const eventually = async (holds: () => boolean, withinMs: number): Promise<boolean> => {
  const end = performance.now() + withinMs
  for (let pauseMs = 1; !holds(); pauseMs = Math.min(pauseMs * 2, 50)) {
    if (performance.now() > end) return false
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  return true
}

/** Waits until something happened to an exchange. */
const happens = async (script: Script, holds: () => boolean): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(holds()), LATE_MS)
  script.notify = () => {
    if (holds()) resolve(true)
  }
  script.notify()
  const outcome = await promise
  clearTimeout(timer)
  return outcome
}

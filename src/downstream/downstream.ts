/**
 * One configured server: kept connected, known and within its limits. Calls go in at `handle`; what the server is and offers
 * comes out at `health$` and `inventory$`. The main link carries lists, completion and subscriptions; calls of hosts use links
 * of their own where the server is legacy (`links.ts`).
 */
import { BehaviorSubject } from 'rxjs'
import { LIST_KINDS, withoutLifetime } from '../catalog/inventory.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { ChangedList, Link, LinkEvents } from '../era/link.ts'
import { ServerError } from '../rpc/call.ts'
import type { Call, HostSession, Outcome } from '../rpc/call.ts'
import { Fidelity } from '../rpc/fidelity.ts'
import { Failure } from '../wire/failure.ts'
import type { Payload } from '../wire/payload.ts'
import { isTerminal } from '../wire/tasks.ts'
import { AppsLists } from './apps-lists.ts'
import { Asking } from './asking.ts'
import { Backoff } from './backoff.ts'
import { Dialer } from './dialer.ts'
import type { DownstreamEnvironment } from './environment.ts'
import { isHopeless, nextHealth, STARTING } from './health.ts'
import type { Health, HealthEvent } from './health.ts'
import { readInventory } from './inventory-reader.ts'
import type { ReadingOptions } from './inventory-reader.ts'
import { listeners } from './link-owner.ts'
import type { LinkOwner } from './link-owner.ts'
import { Pins } from './pins.ts'
import { Links } from './links.ts'
import type { ServerOptions } from './options.ts'
import { Rereads } from './rereads.ts'
import { again, isForgotten, isMismatch } from './retries.ts'
import { Slots } from './slots.ts'

/** Methods whose answer does not depend on who asks: they go over the main link. */
const ON_MAIN_LINK = new Set(['completion/complete'])

export class Downstream {
  #options: ServerOptions
  /** Monotonic time at which it was configured: what the list budget is counted from. */
  readonly startedMs = performance.now()
  readonly health$ = new BehaviorSubject<Health>(STARTING)
  readonly inventory$: BehaviorSubject<Inventory | undefined>
  /** What of its calls was translated, and what was impossible. */
  readonly fidelity: Fidelity
  readonly #environment: DownstreamEnvironment
  readonly #dialer: Dialer
  readonly #links: Links
  readonly #slots: Slots
  readonly #asking: Asking
  readonly #rereads: Rereads
  readonly #pins: Pins
  /** Of the lists for hosts that run MCP Apps, which may differ. */
  readonly #appsPins: Pins
  readonly #apps: AppsLists
  /** How often the server said that a list changed: what was being read meanwhile may be outdated, too. */
  #changes = 0
  #main: Link | undefined
  /** Of a stdio front whose host is legacy: the main link is its own. */
  #soleSession: HostSession | undefined
  #isWanted = false
  #stopping: Promise<void> | undefined
  #drained: () => void = () => undefined
  #running: Promise<void> | undefined
  #wake: () => void = () => undefined
  #readyWaiters = new Set<() => void>()

  constructor(options: ServerOptions, environment: DownstreamEnvironment) {
    this.#options = options
    this.#environment = environment
    this.fidelity = new Fidelity(options.key, environment.log)
    this.#asking = new Asking(() => this.options, this.fidelity)
    this.#dialer = new Dialer(options, environment)
    this.inventory$ = new BehaviorSubject(environment.memory.inventory(options))
    this.#pins = new Pins(environment.memory.pins(options))
    this.#appsPins = new Pins(environment.memory.pins(options, 'apps'))
    this.#slots = new Slots(options.limits.maxConcurrent, options.limits.maxQueued)
    this.#links = new Links(options, {
      open: (owner) => this.#dialer.dial(owner.declared, this.#eventsFor(owner)),
      isShared: () => this.#main?.transport !== 'http',
      nowMs: () => environment.sweeper.nowMs,
    })
    this.#rereads = new Rereads(() => this.#read())
    this.#apps = new AppsLists({
      main: () => this.#main,
      declared: this.#dialer.superset(),
      open: (declared) => this.#dialer.dial(declared, this.#mainEvents()),
      read: async (link, declared, known) => {
        const read = await readInventory(link, { ...this.#reading(known), declared })
        const vetted = this.#vet(read, this.#appsPins, known)
        environment.memory.keepPins(this.options, this.#appsPins.all, 'apps')
        return vetted
      },
      failed: (error) => this.#oddity('lists for hosts with apps could not be read', String(error)),
    })
    environment.sweeper.watch(this.#links)
  }

  /** What hosts that run apps are listed, where that was read; differs from `inventory$` only if the server makes a difference. */
  get appsInventory$(): BehaviorSubject<Inventory | undefined> {
    return this.#apps.inventory$
  }

  /** A host that runs apps wants lists: settles once they are known, or cannot be now. A sole host's own link reads them already. */
  wantApps(): Promise<void> {
    return this.#environment.soleHost === undefined ? this.#apps.want() : Promise.resolve()
  }

  /** Starts connecting in the background; a lazy server whose inventory is stored waits for its first call. */
  start(): void {
    if (this.options.start === 'lazy' && this.inventory$.value !== undefined) return
    this.#run()
  }

  get options(): ServerOptions {
    return this.#options
  }

  /** Other options, from a reload that asks for no restart: limits and time-outs hold from now on. */
  adopt(options: ServerOptions): void {
    const isVettedAnew = options.hidden !== this.options.hidden || options.onChange !== this.options.onChange
    this.#options = options
    if (isVettedAnew) this.#rereads.request()
    this.#dialer.adopt(options)
    this.#links.adopt(options)
    this.#slots.resize(options.limits.maxConcurrent, options.limits.maxQueued)
  }

  /** Takes changed definitions as the true ones, of one tool or of all; resolves with the tools, once they are served. */
  async approve(tool?: string): Promise<readonly string[]> {
    const approved = new Set([...this.#pins.approve(tool), ...this.#appsPins.approve(tool)])
    if (approved.size === 0) return []
    await this.#read()
    await this.#apps.read()
    return [...approved]
  }

  /** The last lines on stderr, oldest first; of a process that has ended, too (F-08). */
  stderrTail(count: number): readonly string[] {
    return this.#dialer.stderrTail(count)
  }

  /** The main link, for `ps`. */
  get link(): Link | undefined {
    return this.#main
  }
  get linkCount(): number {
    return (this.#main === undefined ? 0 : 1) + this.#apps.linkCount + this.#links.size
  }
  get inFlight(): number {
    return this.#slots.inUse
  }

  readonly handle = async (call: Call): Promise<Outcome> => {
    try {
      const waiting = this.#slots.take(call.signal)
      if (waiting !== undefined) await waiting
    } catch (error) {
      throw this.#located(error)
    }
    try {
      return await (this.#main === undefined ? this.#attemptLater(call) : this.#attempt(call, this.#main))
    } catch (error) {
      return await this.#again(error, call).catch((last: unknown) => {
        throw this.#located(last)
      })
    } finally {
      this.#slots.release()
      if (this.#slots.inUse === 0) this.#drained()
    }
  }

  async #again(error: unknown, call: Call): Promise<Outcome> {
    if (!isMismatch(error, call)) return again(error, call, () => this.#attemptLater(call))
    await this.#read()
    const entry = this.inventory$.value?.lists.tools.find(({ original }) => original === call.target)
    return this.#attemptLater({ ...call, paramHeaders: entry?.paramHeaders ?? [] })
  }

  #located(error: unknown): unknown {
    return error instanceof Failure ? error.at(this.options) : error
  }

  /** Watches a resource for the gateway; false if the server does not offer that. Throws `Failure` if it cannot be asked now. */
  async subscribe(uri: string): Promise<boolean> {
    try {
      return await (await this.#ready()).subscribe(uri)
    } catch (error) {
      if (error instanceof ServerError) return false
      throw this.#located(error)
    }
  }

  async unsubscribe(uri: string): Promise<void> {
    await this.#main?.unsubscribe(uri)
  }

  /** Asks to be told of a task's changes. */
  async followTask(id: string): Promise<void> {
    await (await this.#ready()).followTask(id)
  }

  async unfollowTask(id: string): Promise<void> {
    await this.#main?.unfollowTask(id)
  }

  /** A session was told to visit a URL of this server, known to the server by `id`. */
  sentAway(id: string, session: HostSession | undefined): void {
    if (session !== undefined) this.#asking.sentAway(id, session)
  }

  rootsChanged(session: HostSession): void {
    if (session === this.#soleSession) this.#main?.rootsChanged()
    for (const link of this.#links.ofSession(session)) link.rootsChanged()
  }

  /** Skips the wait before the next attempt, and wakes a server that had been given up. */
  retryNow(): void {
    this.#run()
    this.#wake()
  }

  /** Ends when the calls under way have ended, at the latest after `drainMs`. Asked again without patience, it ends at once. */
  stop(drainMs = 0): Promise<void> {
    if (drainMs === 0) this.#drained()
    return (this.#stopping ??= this.#stop(drainMs))
  }

  get #isStopping(): boolean {
    return this.#stopping !== undefined
  }

  async #stop(drainMs: number): Promise<void> {
    this.#change({ type: 'stopping' })
    this.#wake()
    this.#settleWaiters()
    if (drainMs > 0 && this.#slots.inUse > 0) await this.#untilDrained(drainMs)
    this.#environment.sweeper.unwatch(this.#links)
    this.#rereads.close()
    await Promise.all([this.#links.close(), this.#apps.close(), this.#main?.close(), this.#dialer.close()])
    await this.#running
    this.health$.complete()
    this.inventory$.complete()
  }

  #untilDrained(drainMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, drainMs)
      this.#drained = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async #attemptLater(call: Call): Promise<Outcome> {
    return this.#attempt(call, await this.#ready())
  }

  #attempt(call: Call, main: Link): Promise<Outcome> {
    if (main.era === 'modern') return main.handle(call)
    if (this.#environment.soleHost !== undefined || ON_MAIN_LINK.has(call.method))
      return this.#overMain(main, () => main.handle(call))
    return this.#links.lease(call, (link, level) =>
      level === undefined ? link.handle(call) : link.setLevel(level).then(() => link.handle(call)),
    )
  }

  /** A main link whose session the server has forgotten is of no use any more: another is opened (5.3). */
  async #overMain<T>(main: Link, use: () => Promise<T>): Promise<T> {
    try {
      return await use()
    } catch (error) {
      if (isForgotten(error) && this.#main === main) {
        this.#main = undefined
        void main.close()
      }
      throw error
    }
  }

  /** The main link, waiting for a server that is starting; throws at once where waiting is no use (BRIDGING 7.2). */
  async #ready(): Promise<Link> {
    if (this.#main !== undefined) return this.#main
    const { failure, nextTryMs, state } = this.health$.value
    if (state === 'draining') throw new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
    if (failure !== undefined && (state === 'failed' || state === 'down')) {
      const retryAfterMs = nextTryMs === undefined ? {} : { retryAfterMs: Math.round(nextTryMs) }
      throw new Failure(failure.kind, failure.message, { ...failure.facts, ...retryAfterMs, executed: 'no' }, failure)
    }
    this.#isWanted = true
    this.#run()
    await this.#untilReady(this.options.timeouts.connectTimeoutMs)
    if (this.#main !== undefined) return this.#main
    if (this.health$.value.failure !== undefined && this.health$.value.state !== 'starting') return this.#ready()
    throw new Failure('starting', `still starting: ${this.health$.value.reason ?? 'no answer yet'}`, {
      executed: 'no',
      retryable: true,
    })
  }

  #untilReady(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#readyWaiters.delete(done)
        resolve()
      }
      const timer = setTimeout(done, timeoutMs)
      this.#readyWaiters.add(done)
    })
  }

  #run(): void {
    if (this.#isStopping || this.#running !== undefined) return
    this.#running = this.#keepConnected().finally(() => (this.#running = undefined))
  }

  /** Dials, reads, waits for the loss, waits, dials again; ends when stopped or when only a person can help. */
  async #keepConnected(): Promise<void> {
    const backoff = new Backoff(this.#environment.backoff)
    while (!this.#isStopping) {
      this.#change({ type: 'dialing' })
      let upSinceMs = Infinity
      const failure = await this.#connectOnce(() => (upSinceMs = performance.now()))
      this.#main = undefined
      if (this.#isStopping) return
      if (isHopeless(failure)) return this.#giveUp(failure)
      const nowMs = performance.now()
      const { waitMs, isDown } = backoff.fail(nowMs, nowMs - upSinceMs)
      this.#environment.log.warn({ server: this.options.key, kind: failure.kind, nextTryMs: Math.round(waitMs) }, failure.message)
      this.#change({ type: 'lost', failure, nextTryMs: waitMs, givingUp: isDown })
      if (isDown) this.#settleWaiters()
      await this.#pause(waitMs)
    }
  }

  /** From dialing to the loss of the main link; resolves with the reason. */
  async #connectOnce(onUp: () => void): Promise<Failure> {
    const { soleHost, gate } = this.#environment
    let link: Link | undefined
    try {
      const sole = await soleHost
      this.#soleSession = sole?.session
      const declared = sole?.capabilities ?? this.#dialer.superset()
      if (this.#isStopping) throw new Failure('shutting_down', 'stopped before it was started')
      await gate(
        async () => {
          link = await this.#dialer.dialMain(declared, this.#mainEvents())
          await this.#read(link)
        },
        () => this.#isWanted,
      )
      if (link === undefined) throw new Failure('shutting_down', 'stopped before it was started')
      if (this.#isStopping) throw new Failure('shutting_down', 'stopped while it was starting')
      this.#main = link
      onUp()
      this.#announce(link)
      return (await link.closed) ?? new Failure('lost', 'the connection was closed', { retryable: true })
    } catch (error) {
      await link?.close()
      return error instanceof Failure
        ? error
        : new Failure('bad_response', `the handshake failed: ${String(error)}`, { executed: 'no' }, error)
    }
  }

  #announce(link: Link): void {
    const inventory = this.inventory$.value
    this.#change({ type: 'ready', complaints: inventory?.warnings ?? [] })
    void this.#apps.read()
    this.#settleWaiters()
    const tools = inventory?.lists.tools.length ?? 0
    this.#environment.log.info(
      { server: this.options.key, revision: link.revision, transport: link.transport, tools },
      'server is ready',
    )
    this.#rereads.poll(inventory === undefined ? undefined : this.#pollMs(link))
    if (this.health$.value.failures > 0 || this.#environment.isSuccessor) this.#environment.reconnected(this)
  }

  /** Lists that the server cannot announce changes of are read again after their lifetime (3.7). */
  #pollMs(link: Link): number | undefined {
    const announces = (name: string): boolean => {
      const capability = link.capabilities[name] as { listChanged?: unknown } | undefined
      return capability === undefined || capability.listChanged === true
    }
    return ['tools', 'resources', 'prompts'].every(announces) ? undefined : this.#environment.legacyPollMs
  }

  async #read(link = this.#main): Promise<void> {
    if (link === undefined) return
    const { memory } = this.#environment
    void this.#apps.read()
    const changes = this.#changes
    const read = await this.#overMain(link, async () => {
      const raw = await readInventory(link, this.#reading(this.inventory$.value))
      const vetted = this.#vet(raw, this.#pins, this.inventory$.value)
      memory.keepPins(this.options, this.#pins.all)
      return vetted
    })
    const inventory = changes === this.#changes ? read : withoutLifetime(read, LIST_KINDS)
    const isNew = inventory.digest !== this.inventory$.value?.digest
    if (isNew) memory.keepInventory(this.options, inventory)
    // An equal inventory keeps its entries, and with them the bytes made ready for hosts; only their lifetime is new.
    const known = this.inventory$.value
    this.inventory$.next(isNew || known === undefined ? inventory : { ...known, freshness: inventory.freshness })
  }

  /** What may be served of what was read; whatever is new to the operator is logged. */
  #vet(read: Inventory, pins: Pins, served: Inventory | undefined): Inventory {
    const { log } = this.#environment
    const { key, onChange } = this.options
    const vetted = pins.vet(read, served, onChange, (tool, from, to) =>
      log.warn({ server: key, tool, from, to, onChange }, 'the definition of a tool changed'),
    )
    const known = new Set(served?.findings.map(({ kind, name, note }) => JSON.stringify([kind, name, note])))
    for (const { kind, name, note } of read.findings)
      if (!known.has(JSON.stringify([kind, name, note]))) log.warn({ server: key, kind, name }, note)
    return vetted
  }

  #reading(known: Inventory | undefined): ReadingOptions {
    const { legacyTtlMs, legacyPollMs } = this.#environment
    const { limits, hidden } = this.options
    return { limits, hidden, legacyTtlMs, legacyPollMs, nowMs: () => performance.now(), known }
  }

  #giveUp(failure: Failure): void {
    this.#environment.log.error({ server: this.options.key, kind: failure.kind }, failure.message)
    this.#change({ type: 'hopeless', failure })
    this.inventory$.next(undefined)
    this.#settleWaiters()
  }

  #change(event: HealthEvent): void {
    this.health$.next(nextHealth(this.health$.value, event))
  }

  #settleWaiters(): void {
    for (const done of this.#readyWaiters) done()
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** The main link of a legacy server serves nobody: what it asks is declined at once (B263). With a sole host it is its link. */
  #mainEvents(): LinkEvents {
    const isSole = this.#environment.soleHost !== undefined
    return {
      listChanged: (list) => this.#outdated(list),
      updated: (uri, params) => this.#environment.updated(this.options.key, uri, params),
      taskChanged: (task) => this.#taskChanged(task),
      message: (params, call) => call?.notify('notifications/message', this.#labelled(params)),
      ask: async (question, call) =>
        isSole ? this.#asking.ask(question, call, call, this.#soleSession) : this.#asking.decline(question),
      elicitationComplete: (id) => this.#asking.completed(id, this.#soleSession),
      oddity: (reason, sample) => this.#oddity(reason, sample),
    }
  }

  /** On a link that principals share nobody is asked but by a call, and what belongs to no call is told nobody (B051, B052). */
  #eventsFor(owner: LinkOwner): LinkEvents {
    return {
      listChanged: (list) => this.#outdated(list),
      updated: () => undefined,
      taskChanged: (task) => this.#taskChanged(task, owner),
      message: (params, call) => {
        const labelled = this.#labelled(params)
        if (call !== undefined) call.notify('notifications/message', labelled)
        else for (const session of listeners(owner)) session.notify('notifications/message', labelled)
      },
      ask: (question, call) =>
        owner.isolation === 'shared'
          ? this.#asking.ask(question, undefined, undefined, undefined)
          : this.#asking.ask(question, call, [...owner.waiting].at(-1), [...owner.sessions].at(-1)),
      elicitationComplete: (id) =>
        this.#asking.completed(id, owner.isolation === 'session' ? [...owner.sessions].at(-1) : undefined),
      oddity: (reason, sample) => this.#oddity(reason, sample),
    }
  }

  /** From now on hosts are told to keep nothing of that list, until it has been read again (B156). */
  #outdated(list: ChangedList): void {
    this.#changes++
    const known = this.inventory$.value
    if (known !== undefined) {
      const outdated = withoutLifetime(known, list === 'resources' ? ['resources', 'templates'] : [list])
      if (outdated !== known) this.inventory$.next(outdated)
    }
    this.#rereads.request()
  }

  #taskChanged(task: Payload, owner?: LinkOwner): void {
    if (isTerminal(task.text('status'))) this.#links.taskEnded(task.text('taskId') ?? '', owner)
    this.#environment.taskChanged(this.options.key, task, owner)
  }

  /** Log messages say which server they are from (BRIDGING 2.3). */
  #labelled(params: Payload): Payload {
    const logger = params.text('logger')
    params.set('logger', JSON.stringify(logger === undefined ? this.options.key : `${this.options.key}/${logger}`))
    return params
  }

  #oddity(reason: string, sample: string): void {
    this.#environment.log.debug({ server: this.options.key, sample: sample.slice(0, 200) }, reason)
  }
}

/**
 * `listen.workers`: starts the processes that serve hosts and restarts them. The supervisor itself serves no address. It runs everything
 * that must exist once: the configuration, the admin socket and listener, hosts on pipes, the store that the workers share, and the
 * processes of servers that all callers share (decision 0121).
 *
 *                         ┌ worker 1 ┐  replicas of each other: a request that belongs to another one is passed on, once
 *     host ── one port ───┤          ├── servers over HTTP; processes of its own sessions
 *                         └ worker 2 ┘
 *                              ├── store, reports, commands: the channel between a process and its parent
 *                         supervisor ── view: a gateway without addresses ── owner: a gateway of the shared processes
 */
import cluster from 'node:cluster'
import type { Worker as Child } from 'node:cluster'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { FeedMessage, FeedOptions } from '../../admin/calls/calls.ts'
import { startGateway } from '../../app.ts'
import type { Member } from '../../app/member.ts'
import type { Running } from '../../app/running.ts'
import { asError } from '../../values/as-error.ts'
import type { Configuration } from '../../config/options.ts'
import { Backoff, DEFAULT_BACKOFF } from '../../downstream/pacing/backoff.ts'
import { sealKeys } from '../../seal-key.ts'
import { MemoryStore } from '../../store/memory-store.ts'
import { operateStore } from '../../store/relayed-store.ts'
import { within } from '../../time/within.ts'
import type { TcpAddress } from '../../transport/http1/server/connection/listen-address.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Loaded } from '../terminal/io.ts'
import { remark } from '../terminal/print.ts'
import { Exchange, WORKER_VARIABLE } from './exchange.ts'
import type { Port } from './exchange.ts'
import type { ProcessLog } from './serving.ts'
import { SILENCE_MS, watchLiveness } from './liveness.ts'
import { sentConfiguration } from './sent-configuration.ts'
import { closeUnconfirmed } from './passed-connections.ts'
import { ownedServers, ownerConfiguration, viewConfiguration } from './shared-servers.ts'
import type { OwnerAddress } from './shared-servers.ts'
import { relayLogs } from './worker.ts'
import type { RelayedLine, Start } from './worker.ts'

/** How long a worker may take to end beyond the drain time. */
const GRACE_MS = 2_000
/** How long a worker may take to answer a request for its state. */
const ANSWER_MS = 3_000
/** Pauses before restarts. There is no crash loop as of servers: without workers no address is served. */
const RESTARTS = { ...DEFAULT_BACKOFF, maxMs: 10_000, maxCrashes: Infinity }

/** The state of one worker, whose process may change. */
interface Slot {
  /** From 1. */
  readonly index: number
  readonly backoff: Backoff
  child: Child | undefined
  /** `undefined`: there is no process, or it does not serve yet. */
  exchange: Exchange | undefined
  restarts: number
  timer: NodeJS.Timeout | undefined
}

/** A worker that serves. */
export interface Serving {
  readonly index: number
  readonly pid: number
  readonly exchange: Exchange
}

/** The answer of one worker to a request. */
export interface WorkerAnswer {
  readonly worker: Serving
  readonly answer: unknown
}

/** The part of the start message that all workers get. */
type CommonStart = Omit<Start, 'configuration' | 'member' | 'isWatched'> & { readonly member: Omit<Member, 'index'> }

/** The log of the worker may contain the reason. */
class EndedEarly extends CommandError {
  constructor(index: number, how: string | number | null) {
    super(EXIT.internal, `worker ${index} ended before it served (${how}); see its log lines above (listen.workers)`)
  }
}

interface Follower {
  readonly options: FeedOptions
  readonly receive: (message: FeedMessage) => void
}

export class Supervisor {
  /** The gateway for hosts on pipes and for operators. */
  readonly view: Running
  /** Runs the processes of shared servers. */
  readonly owner: Running
  readonly #loaded: Loaded
  readonly #log: ProcessLog['log']
  readonly #store: MemoryStore
  readonly #start: CommonStart
  readonly #slots: readonly Slot[]
  readonly #followers = new Map<number, Follower>()
  #configuration: Configuration
  /** The configuration for workers that start: during a reload, the one that is being applied. */
  #wanted: Configuration
  #latestFollower = 0
  #watchers = 0
  #ending: Promise<void> | undefined

  private constructor(
    loaded: Loaded,
    log: ProcessLog['log'],
    parts: {
      readonly view: Running
      readonly owner: Running
      readonly store: MemoryStore
      readonly start: CommonStart
    },
  ) {
    this.view = parts.view
    this.owner = parts.owner
    this.#loaded = loaded
    this.#configuration = this.#wanted = loaded.configuration
    this.#log = log
    this.#store = parts.store
    this.#start = parts.start
    this.#slots = Array.from({ length: loaded.configuration.workers }, (_, at) => ({
      index: at + 1,
      backoff: new Backoff(RESTARTS),
      child: undefined,
      exchange: undefined,
      restarts: 0,
      timer: undefined,
    }))
  }

  /** Resolves when all workers serve. Rejects with the error of the first one that cannot, and leaves nothing running. */
  static async start(loaded: Loaded, { log, redactor }: ProcessLog): Promise<Supervisor> {
    const { configuration, context, io } = loaded
    let supervisor: Supervisor | undefined
    const token = randomBytes(32).toString('base64url')
    const environment = { log, redactor, path: context.env['PATH'], atExit: io.atExit }
    const owner = await startGateway(ownerConfiguration(configuration, token), environment)
    const address: OwnerAddress = { origin: await owner.front.addresses.origin(), token }
    const store: MemoryStore = new MemoryStore({
      maxListBytes: configuration.host.limits.maxTotalEventBytes,
      published: (channel, message) => supervisor?.notifyAll('published', channel, message),
    })
    const member = { keys: sealKeys(configuration.stateKeys, configuration.stateDir, log), sinceMs: Date.now() }
    const view = await startGateway(viewConfiguration(configuration, address), {
      ...environment,
      store,
      member: { ...member, index: 0 },
    }).catch(async (error: unknown) => {
      await owner.stop(0)
      throw error
    })
    const { format } = configuration.log
    const isPretty = format === 'pretty' || (format === 'auto' && io.stderr.isTTY === true)
    const start = { member, owner: address, logFormat: isPretty ? 'pretty' : 'json' } as const
    supervisor = new Supervisor(loaded, log, { view, owner, store, start })
    try {
      await supervisor.#startAll()
    } catch (error) {
      await supervisor.stop(0)
      throw error
    }
    return supervisor
  }

  /** The workers that serve now. */
  get serving(): readonly Serving[] {
    return this.#slots.flatMap(({ index, child, exchange }) =>
      exchange === undefined || child === undefined ? [] : [{ index, pid: child.process.pid ?? 0, exchange }],
    )
  }

  /** Number of restarts of each worker, by index from 1. */
  get restarts(): ReadonlyMap<number, number> {
    return new Map(this.#slots.map(({ index, restarts }) => [index, restarts]))
  }

  get configuration(): Configuration {
    return this.#configuration
  }

  /** Sends a request to every worker that serves; leaves out workers that end meanwhile, or do not answer in time. */
  async requestAll(name: string, ...args: readonly unknown[]): Promise<readonly WorkerAnswer[]> {
    const answers = this.serving.map(async (worker) => {
      const answer = await within(ANSWER_MS, worker.exchange.request('answer', name, ...args))
      return answer === undefined ? [] : [{ worker, answer }]
    })
    return (await Promise.allSettled(answers)).flatMap((end) => (end.status === 'fulfilled' ? end.value : []))
  }

  notifyAll(name: string, ...args: readonly unknown[]): void {
    for (const { exchange } of this.serving) exchange.notify(name, ...args)
  }

  /** All processes as one running gateway, for the services of a process. */
  get running(): Running {
    const { view } = this
    const whole: Partial<Running> = {
      apply: (next, restart) => this.#apply(next, restart),
      watchCalls: () => this.#watchCalls(),
      stop: (withinMs) => this.stop(withinMs),
      [Symbol.asyncDispose]: () => this.stop(),
    }
    const configuration = { get: () => this.#configuration }
    // Cast: all other members are those of the view.
    return Object.setPrototypeOf(Object.defineProperties(whole, { configuration }), view) as Running
  }

  /** Passes on rows of the workers' calls as they begin and end, until the returned function is called. */
  follow(options: FeedOptions, receive: (message: FeedMessage) => void): () => void {
    const id = ++this.#latestFollower
    this.#followers.set(id, { options, receive })
    this.notifyAll('follow', id, options)
    return () => {
      this.#followers.delete(id)
      this.notifyAll('unfollow', id)
    }
  }

  /** Ends the workers within the drain time, open calls first, and then their shared parts. */
  stop(withinMs?: number): Promise<void> {
    return (this.#ending ??= this.#stop(withinMs))
  }

  async #stop(withinMs: number | undefined): Promise<void> {
    await Promise.all([this.view.stop(withinMs), ...this.#slots.map((slot) => this.#end(slot, withinMs))])
    await this.owner.stop(withinMs)
    await this.#store[Symbol.asyncDispose]()
  }

  async #startAll(): Promise<void> {
    const { program = [], args = [] } = this.#loaded.context
    // The single executable has no script: its place is the first word of the command line.
    const words = [...program.slice(1), ...args]
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({
      exec: words[0] ?? 'up',
      args: words.slice(1),
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    const addresses = await Promise.all(this.#slots.map((slot) => this.#open(slot)))
    this.view.front.addresses.servedAt(addresses[0] ?? [])
    for (const slot of this.#slots) this.#restartOnExit(slot)
    const { logs } = this.owner
    void relayLogs(
      logs,
      () => this.#configuration,
      (lines) => this.#logged(lines),
    )
  }

  /** Resolves with the addresses of a new worker once it serves. */
  async #open(slot: Slot): Promise<readonly TcpAddress[]> {
    const child = cluster.fork({ [WORKER_VARIABLE]: String(slot.index) })
    slot.child = child
    closeUnconfirmed(child)
    const { stderr: input } = child.process
    // Lines of its log, and errors of Node itself.
    if (input !== null) createInterface({ input }).on('line', (line) => remark(this.#loaded.io, line))
    const port: Port = {
      send: (message) => child.send(message),
      onMessage: (receive) => void child.on('message', receive),
      onClose: (closed) => void child.once('disconnect', closed),
    }
    // Messages that are sent before the worker listens would be lost.
    const ready = Promise.withResolvers<void>()
    child.once('exit', (code, signal) => ready.reject(new EndedEarly(slot.index, signal ?? code)))
    // It cannot be started, or has just ended, which a message to it meets first: `exit` follows then.
    child.on('error', (error) => ready.reject(error))
    const exchange: Exchange = new Exchange(port, {
      ready: ready.resolve,
      store: (operation: unknown, args: readonly unknown[]) => operateStore(this.#store, operation, args),
      logs: (lines: readonly RelayedLine[]) => this.#logged(lines),
      feed: (id: number, message: FeedMessage) => this.#followers.get(id)?.receive(message),
    })
    const member: Member = { ...this.#start.member, index: slot.index }
    await ready.promise
    const { index } = slot
    const unwatch = watchLiveness(exchange, () => {
      this.#log.error({ worker: index }, `a worker has not answered for ${SILENCE_MS / 1_000} s: it is killed`)
      child.process.kill('SIGKILL')
    })
    child.once('exit', unwatch)
    let given = this.#wanted
    const start: Start = { ...this.#start, configuration: sentConfiguration(given), member, isWatched: this.#watchers > 0 }
    const addresses = await exchange.request<readonly TcpAddress[]>('start', start)
    // A reload that began meanwhile did not reach it.
    while (given !== this.#wanted) {
      given = this.#wanted
      await reload(exchange, given)
    }
    slot.exchange = exchange
    exchange.notify('watch', this.#watchers > 0)
    for (const [id, { options }] of this.#followers) exchange.notify('follow', id, options)
    return addresses
  }

  /** Restarts a worker that ends unexpectedly. */
  #restartOnExit(slot: Slot): void {
    const { child } = slot
    const startedMs = performance.now()
    const ended = (code: number | null, signal: string | null): void => {
      slot.exchange = undefined
      if (this.#ending !== undefined) return
      const { waitMs } = slot.backoff.fail(performance.now(), { upMs: performance.now() - startedMs, isCrash: true })
      const facts = { worker: slot.index, code, signal, nextTryMs: Math.round(waitMs) }
      this.#log.error(facts, 'a worker has ended: its calls are lost, its sessions continue at others, and it is restarted')
      slot.restarts++
      slot.timer = setTimeout(() => void this.#restart(slot), waitMs)
    }
    const { exitCode = null, signalCode = null } = child?.process ?? {}
    if (child === undefined || child.isDead()) ended(exitCode, signalCode)
    else child.once('exit', ended)
  }

  async #restart(slot: Slot): Promise<void> {
    if (this.#ending !== undefined) return
    try {
      this.view.front.addresses.servedAt(await this.#open(slot))
      this.#log.info({ worker: slot.index }, 'the worker serves again')
    } catch (error) {
      this.#log.error({ worker: slot.index, error: String(error) }, 'a worker cannot be started')
      slot.child?.process.kill('SIGKILL')
    }
    this.#restartOnExit(slot)
  }

  async #end(slot: Slot, withinMs: number | undefined): Promise<void> {
    clearTimeout(slot.timer)
    const { child } = slot
    if (child === undefined || child.isDead()) return
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    const maxMs = Math.min(this.#configuration.host.drainMs, withinMs ?? Infinity) + GRACE_MS
    const timer = setTimeout(() => child.process.kill('SIGKILL'), maxMs)
    if (slot.exchange === undefined) child.process.kill('SIGKILL')
    else slot.exchange.notify('stop')
    await exited
    clearTimeout(timer)
  }

  #logged(lines: readonly RelayedLine[]): void {
    for (const { line, maxBytes } of lines) this.view.logs.relayed(line, maxBytes)
  }

  #watchCalls(): () => void {
    const unwatch = this.view.watchCalls()
    const count = (by: number): void => {
      this.#watchers += by
      if (this.#watchers === (by > 0 ? 1 : 0)) this.notifyAll('watch', by > 0)
    }
    count(1)
    let isWatching = true
    return () => {
      unwatch()
      if (isWatching) count(-1)
      isWatching = false
    }
  }

  /**
   * Applies to the owner first, whose processes the others reach. If no worker can apply it, such as with an address in use, nothing is
   * changed; a single worker that cannot is ended, and restarted with the new configuration.
   */
  async #apply(next: Configuration, restart: ReadonlySet<string>): Promise<void> {
    const { owner } = this.#start
    const before = this.#configuration
    await this.owner.apply(ownerConfiguration(next, owner.token), restart)
    this.#wanted = next
    const workers = this.serving
    const ends = await Promise.allSettled(workers.map(({ exchange }) => reload(exchange, next)))
    const [failed] = ends.flatMap((end) => (end.status === 'rejected' ? [asError(end.reason)] : []))
    const [addresses] = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
    if (addresses === undefined && failed !== undefined) {
      this.#wanted = before
      // Workers that started meanwhile serve the new one.
      for (const { exchange } of this.serving)
        if (!workers.some((worker) => worker.exchange === exchange))
          await reload(exchange, before).catch(() => exchange.notify('stop'))
      await this.owner.apply(ownerConfiguration(before, owner.token), restart)
      throw failed
    }
    for (const [at, end] of ends.entries()) if (end.status === 'rejected') workers[at]?.exchange.notify('stop')
    const owned = ownedServers(next)
    await this.view.apply(viewConfiguration(next, owner), new Set([...restart].filter((key) => !owned.has(key))))
    if (addresses !== undefined) this.view.front.addresses.servedAt(addresses)
    this.#configuration = next
    this.#store.maxListBytes = next.host.limits.maxTotalEventBytes
  }
}

const reload = (exchange: Exchange, configuration: Configuration): Promise<readonly TcpAddress[]> =>
  exchange.request('answer', 'reload', sentConfiguration(configuration))

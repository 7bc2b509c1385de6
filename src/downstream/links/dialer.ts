/**
 * Opens links to one server, whatever it takes: a process, a socket, both; remembers the era it found; keeps one process
 * ready for the next link (the spare).
 */
import { dialHttp, dialPipe, probeEra } from '../../era/server/dial.ts'
import type { Dialed, Dialing } from '../../era/server/dial.ts'
import type { Declared, Link, LinkEvents } from '../../era/server/link.ts'
import { ServerError } from '../../rpc/call.ts'
import { Connection } from '../../rpc/connection.ts'
import type { Bearer, Channel } from '../../transport/channel/channel.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import type { Era, LegacyRevision } from '../../wire/protocol/revisions.ts'
import type { Companion, DownstreamEnvironment, PipeChannel, ServerProcess } from '../environment.ts'
import { Heartbeat } from '../health/heartbeat.ts'
import type { ServerStates } from '../health/server-state.ts'
import type { ServerOptions } from '../options.ts'
import type { LinkReports } from '../link-reports.ts'
import { isProcessEnd } from '../pacing/restarts.ts'
import { Spare } from '../spare.ts'
import type { StartSlot } from '../pacing/starts.ts'

/** What the main link declares: everything that a server may request of a host (BRIDGING 3.0 rule 3). */
const SUPERSET: Declared = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: { listChanged: true } }
const COMPANION_POLL_MS = 100
/** A start that a call waits for. */
const wanted = (): boolean => true
const unwanted = (): boolean => false

/** The host that a link serves, as far as it is reported to its server. */
interface DialedFor {
  readonly declared: Declared
  readonly clientInfo?: unknown
  readonly revision?: LegacyRevision | undefined
}

/** A process that has been sent nothing, and the slot that it may still hold. */
interface Started {
  readonly connection: Connection
  readonly slot: StartSlot
}

/** One attempt; what of the options is set aside for it. */
interface DialChoice {
  /** A call waits for it. */
  readonly isWanted: () => boolean
  readonly isMain?: boolean
  readonly era?: ServerOptions['era']
  readonly transport?: ServerOptions['transport']
}

export class Dialer {
  #options: ServerOptions
  readonly #environment: DownstreamEnvironment
  readonly #bearer: Bearer | undefined
  readonly #spare: Spare<Started>
  /** When the process behind the main link was spawned. */
  #mainStartedMs = 0
  #companion: Companion | undefined
  /** What was started last for the main link; kept after its end, for what it said before. */
  #mainProcess: Pick<PipeChannel, 'process'> | undefined
  /** Everything that is open or opening. */
  readonly #channels = new Set<Channel>()
  #isClosed = false
  readonly #states: ServerStates
  readonly #reports: LinkReports

  /** `bearer`: sent with every request over HTTP. */
  constructor(
    options: ServerOptions,
    environment: DownstreamEnvironment,
    bearer: Bearer | undefined,
    states: ServerStates,
    reports: LinkReports,
  ) {
    this.#options = options
    this.#bearer = bearer
    this.#states = states
    this.#reports = reports
    this.#environment = environment
    this.#spare = new Spare({
      options: environment.spare,
      isAllowed: () =>
        !this.#isClosed && this.#options.spare === 1 && this.#options.url === undefined && environment.soleHost === undefined,
      start: () => this.#startProcess(unwanted),
      ended: ({ connection }) => connection.channel.closed,
      stop: ({ connection }) => connection.channel.close(),
    })
  }

  /** Other options, none of which asks for a restart. */
  adopt(options: ServerOptions): void {
    this.#options = options
  }

  /** The last lines on stderr of the process behind the main link, which may have ended (F-08). */
  stderrTail(count: number): readonly string[] {
    return this.#mainProcess?.process?.stderrTail(count) ?? []
  }

  /** A legacy session has come that uses this server. */
  sessionSeen(): void {
    this.#spare.want()
  }

  /** The processes that run for it now. */
  get processes(): readonly Pick<ServerProcess, 'pid' | 'startedAt'>[] {
    // Cast: the channels of processes have this member.
    const processes = [...[...this.#channels].map((channel) => (channel as Partial<PipeChannel>).process), this.#companion]
    return processes.filter((process) => process !== undefined)
  }

  superset(): Declared {
    return SUPERSET
  }

  /** A further link, for one caller. */
  async dial(host: DialedFor, events: LinkEvents): Promise<Link> {
    const { link } = await this.#dial(host, events, { isWanted: wanted })
    this.#spare.prepare()
    return link
  }

  /** A process of ours ended by itself; every other failure is one of connecting. */
  isCrash(failure: Failure): boolean {
    const { launch, url } = this.#options
    return launch !== undefined && isProcessEnd(failure) && (url === undefined || this.#companion === undefined)
  }

  /** Whether a modern server may speak the legacy era, too: it is not known to refuse. */
  get mayBeLegacy(): boolean {
    return this.#options.era === 'auto' && this.#states.now.takesInitialize !== false
  }

  /** Whether a server whose main link is modern has taken `initialize`, too. */
  get takesInitialize(): boolean {
    return this.#states.now.takesInitialize === true
  }

  /** The same in the legacy era, to a server whose main link is modern; `undefined`: it does not speak that (BRIDGING 3.0 rule 0). */
  async dialLegacy(host: DialedFor, events: LinkEvents): Promise<Link | undefined> {
    if (!this.mayBeLegacy) return undefined
    const { transport } = this.#options
    const isKnown = this.takesInitialize
    try {
      const choice = { isWanted: wanted, era: 'legacy', transport: transport === 'auto' ? 'http' : transport } as const
      const { link } = await this.#dial(host, events, choice)
      this.#keepTakesInitialize(true)
      return link
    } catch (error) {
      if (isOfOtherEra(error)) this.#keepTakesInitialize(false)
      else if (isKnown) throw error
      // It may have been slow: not remembered.
      else if (isUnwilling(error)) this.#states.send({ type: 'takes-initialize', takesInitialize: false })
      if (!this.mayBeLegacy) this.#reports.send({ type: 'legacy-refused' })
      return undefined
    }
  }

  /** What a server that has taken `initialize` beside a modern link makes of it now; `undefined`: that cannot be told. */
  async probeLegacy(events: LinkEvents): Promise<Era | undefined> {
    try {
      const link = await this.dialLegacy({ declared: this.superset() }, events)
      await link?.close()
      return link === undefined ? 'modern' : 'legacy'
    } catch {
      return undefined
    }
  }

  /** Drops what is known of its era. */
  dropVerdict(): void {
    this.#states.send({ type: 'takes-initialize', takesInitialize: undefined })
    this.#environment.memory.keepVerdict(this.#options, undefined)
  }

  #keepTakesInitialize(takesInitialize: boolean): void {
    const { memory } = this.#environment
    this.#states.send({ type: 'takes-initialize', takesInitialize })
    const verdict = memory.verdict(this.#options)
    if (verdict?.era === 'modern') memory.keepVerdict(this.#options, { ...verdict, takesInitialize })
  }

  /**
   * The main link: starts the companion process first where there is one, and settles the era. `isWanted`: a call waits for it.
   * `prefersLegacy`: it serves one host, which is legacy, so that a server of both eras is spoken to in that one (BRIDGING 3.0 rules 0, 4).
   */
  async dialMain(
    host: DialedFor,
    events: LinkEvents,
    { isWanted, prefersLegacy }: { readonly isWanted: () => boolean; readonly prefersLegacy: boolean },
  ): Promise<Link> {
    const options = this.#options
    if (options.launch !== undefined && options.url !== undefined) await this.#startCompanion(isWanted)
    const link =
      (prefersLegacy ? await this.#dialLegacyFirst(host, events, isWanted) : undefined) ??
      (await this.#dialAny(host, events, isWanted))
    void link.closed.then(() => this.#spare.drop())
    if (this.#companion !== undefined) void this.#companion.exited.then(() => link.close())
    if (link.era === 'legacy') this.#spare.started(performance.now() - this.#mainStartedMs)
    this.#spare.prepare()
    Heartbeat.watch(link, this.#environment.sweeper, () => this.#options.timeouts.pingMs)
    return link
  }

  /** `undefined`: the server does not take `initialize` as its first message, or it is known already what it speaks. */
  async #dialLegacyFirst(host: DialedFor, events: LinkEvents, isWanted: () => boolean): Promise<Link | undefined> {
    const era = this.#environment.memory.verdict(this.#options)?.era
    if (era === 'legacy' || !this.mayBeLegacy) return undefined
    try {
      const { link } = await this.#dial(host, events, { isWanted, isMain: true, era: 'legacy' })
      // Of a server that was not asked for its era nothing is remembered: it may be modern, too.
      this.#keepTakesInitialize(true)
      return link
    } catch (error) {
      if (!isOfOtherEra(error) && !isUnwilling(error)) throw error
      this.#keepTakesInitialize(false)
      return undefined
    }
  }

  async #dialAny(host: DialedFor, events: LinkEvents, isWanted: () => boolean): Promise<Link> {
    const options = this.#options
    const { memory } = this.#environment
    const { link, verdict } = await this.#dial(host, events, { isWanted, isMain: true }).catch((error: unknown) => {
      // A verdict that no longer holds is dropped: the era is asked for again, at once where the server refused (B213).
      const hadVerdict = memory.verdict(options) !== undefined
      const isRefusal = isOfOtherEra(error)
      if (isRefusal || isSilence(error)) this.dropVerdict()
      if (!hadVerdict || !isRefusal || options.era !== 'auto') throw error
      return this.#dial(host, events, { isWanted, isMain: true })
    })
    const takesInitialize = verdict.era === 'modern' ? this.#states.now.takesInitialize : undefined
    memory.keepVerdict(options, takesInitialize === undefined ? verdict : { ...verdict, takesInitialize })
    return link
  }

  /** What the server speaks now, asked beside all links; `undefined` where that cannot be told. */
  async probe(): Promise<Era | undefined> {
    const options = this.#options
    if (options.url === undefined || options.era !== 'auto') return undefined
    const channel = this.#opened(this.#environment.openers.http(options, this.#bearer))
    try {
      return await probeEra(channel, await this.#dialing({ declared: this.superset() }))
    } catch {
      return undefined
    } finally {
      await channel.close()
    }
  }

  /** Ends everything it opened, and what is still being opened. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#environment.starts.review()
    await Promise.all([this.#spare.release(), ...[...this.#channels].map((channel) => channel.close()), this.#companion?.stop()])
  }

  #opened<C extends Channel>(channel: C): C {
    if (this.#isClosed) throw new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
    this.#channels.add(channel)
    void channel.closed.then(() => this.#channels.delete(channel))
    return channel
  }

  async #dial(host: DialedFor, events: LinkEvents, choice: DialChoice): Promise<Dialed> {
    const dialed = await this.#dialChannel(host, events, choice)
    this.#environment.linkOpened?.(dialed.link, this.#options)
    return dialed
  }

  async #dialChannel(host: DialedFor, events: LinkEvents, choice: DialChoice): Promise<Dialed> {
    const { openers } = this.#environment
    const options = this.#options
    const { isWanted, isMain = false, era = options.era, transport = options.transport } = choice
    const dialing: Dialing = { ...(await this.#dialing(host)), events, era }
    if (options.url === undefined) {
      const slots: StartSlot[] = []
      const start = async (): Promise<Connection> => {
        const { connection, slot } = await this.#takeProcess(isWanted, isMain)
        slots.push(slot)
        return connection
      }
      return dialPipe(start, dialing).finally(() => slots.forEach((slot) => slot.release()))
    }
    const open = {
      http: () => this.#opened(openers.http(options, this.#bearer)),
      sse: () => this.#opened(openers.sse(options, this.#bearer)),
    }
    return this.#companion === undefined ? dialHttp(open, transport, dialing) : this.#dialWhenUp(open, transport, dialing)
  }

  async #dialing({ declared, clientInfo, revision }: DialedFor): Promise<Omit<Dialing, 'events'>> {
    const { sweeper, sseIds, identity, instance, memory, soleHost } = this.#environment
    const options = this.#options
    const { startMs, probeMs, idleMs, totalMs } = options.timeouts
    return {
      era: options.era,
      verdict: memory.verdict(options),
      declared,
      usesClientCredentials: options.credential?.mode === 'client',
      identity,
      clientInfo,
      revision,
      position: { instance, hops: (await soleHost)?.hops ?? 0 },
      timeouts: { startMs, probeMs, idleMs, totalMs },
      sweeper,
      sseIds,
    }
  }

  /** A process that was just started answers when it is ready: refused connections are tried again until the start time-out. */
  async #dialWhenUp(
    open: Parameters<typeof dialHttp>[0],
    transport: ServerOptions['transport'],
    dialing: Dialing,
  ): Promise<Dialed> {
    const deadlineMs = performance.now() + this.#options.timeouts.startMs
    for (;;) {
      try {
        return await dialHttp(open, transport, dialing)
      } catch (error) {
        if (!isUnreachable(error) || performance.now() >= deadlineMs) throw error
        if (this.#companion === undefined)
          throw new Failure('exited', 'the command ended before its url answered', { executed: 'no' }, error)
        await new Promise((resolve) => setTimeout(resolve, COMPANION_POLL_MS))
      }
    }
  }

  async #startCompanion(isWanted: () => boolean): Promise<void> {
    if (this.#companion !== undefined) return
    const slot = await this.#acquire(isWanted)
    const companion = await this.#environment.openers.companion(this.#options).catch((error: unknown) => {
      slot.release()
      throw error
    })
    slot.watch(companion)
    void companion.exited.then(() => slot.release())
    if (this.#isClosed) {
      await companion.stop()
      throw new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
    }
    this.#companion = companion
    this.#mainProcess = { process: companion }
    void companion.exited.then(() => {
      if (this.#companion === companion) this.#companion = undefined
    })
  }

  /** The spare, or a new process. */
  async #takeProcess(isWanted: () => boolean, isMain: boolean): Promise<Started> {
    const spare = this.#spare.take()
    return spare === undefined ? this.#startProcess(isWanted, isMain) : spare.catch(() => this.#startProcess(isWanted, isMain))
  }

  async #startProcess(isWanted: () => boolean, isMain = false): Promise<Started> {
    const slot = await this.#acquire(isWanted)
    try {
      const channel = this.#opened(this.#environment.openers.pipe(this.#options))
      if (isMain) this.#mainProcess = channel
      if (isMain) this.#mainStartedMs = performance.now()
      const connection = new Connection(channel, this.#environment.sweeper)
      await connection.open()
      if (channel.process !== undefined) slot.watch(channel.process)
      void channel.closed.then(() => slot.release())
      return { connection, slot }
    } catch (error) {
      slot.release()
      throw error
    }
  }

  /** A closed dialer does not wait for a slot. */
  #acquire(isWanted: () => boolean): Promise<StartSlot> {
    return this.#environment.starts.acquire(() => this.#isClosed || isWanted())
  }
}

/** The server answered the dialing, in a way that says that it does not speak what was dialed (BRIDGING 5.2). */
const OTHER_ERA: ReadonlySet<FailureKind> = new Set(['not_found', 'bad_response', 'version'])
const isOfOtherEra = (error: unknown): boolean =>
  error instanceof ServerError || (error instanceof Failure && OTHER_ERA.has(error.kind))

/** It may be the way in which a server of one era meets a message of another. */
const isUnwilling = (error: unknown): boolean => error instanceof Failure && (error.kind === 'timeout' || error.kind === 'exited')

const isSilence = (error: unknown): boolean => error instanceof Failure && error.kind === 'timeout'

const isUnreachable = (error: unknown): boolean => {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof Failure && cause.kind === 'unreachable') return true
  return false
}

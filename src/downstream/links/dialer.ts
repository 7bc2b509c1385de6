/** Opens links to one server. Remembers the detected era, and keeps one process ready for the next link (the spare). */
import { dialHttp, dialPipe, probeEra } from '../../era/server/dial.ts'
import type { Dialed, Dialing } from '../../era/server/dial.ts'
import type { Declared, Link, LinkEvents } from '../../era/server/link.ts'
import { ServerError } from '../../rpc/call.ts'
import { Connection } from '../../rpc/connection.ts'
import { SseSiblings } from '../../rpc/sse-siblings.ts'
import type { Bearer, Channel } from '../../transport/channel/channel.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import type { Era, LegacyRevision } from '../../wire/protocol/revisions.ts'
import type { Companion, DownstreamEnvironment, PipeChannel, ServerProcess } from '../environment.ts'
import { Heartbeat } from '../health/heartbeat.ts'
import type { ServerStates } from '../health/server-state.ts'
import type { ServerOptions, ServerTimeouts } from '../options.ts'
import type { LinkReports } from '../link-reports.ts'
import { isProcessEnd } from '../pacing/restarts.ts'
import { Spare } from '../spare.ts'
import type { StartSlot } from '../pacing/starts.ts'
import { limitsOf } from './channel-limits.ts'

/** The capabilities that the main link declares: everything that a server may request of a host (BRIDGING 3.0 rule 3). */
export const SUPERSET: Declared = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: { listChanged: true } }
const COMPANION_POLL_MS = 100
/** One may be an outage (B214). */
const BROKEN_PROBES = 2
/** For `isWanted`: a call waits for the start. */
const wanted = (): boolean => true

/** The properties of a link's host that are sent to the server. */
interface DialedFor {
  readonly declared: Declared
  readonly clientInfo?: unknown
  readonly revision?: LegacyRevision | undefined
  /** The caller of the link; absent: the gateway itself. */
  readonly principal?: string
}

/** A started process that was not sent a message yet, and the slot that it may still hold. */
interface Started {
  readonly connection: Connection
  readonly slot: StartSlot
}

/** The choices for one attempt. `era` and `transport` override the options. */
interface DialChoice {
  /** Whether a call waits for the link. */
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
  /** The last process of the main link. It is kept after its end, for its stderr. */
  #mainProcess: Pick<PipeChannel, 'process'> | undefined
  /** The channels that are open or being opened. */
  readonly #channels = new Set<Channel>()
  #isClosed = false
  /** How many probes in a row the server left unanswered by breaking the connection. */
  #brokenProbes = 0
  readonly #states: ServerStates
  readonly #reports: LinkReports
  readonly #sse: SseSiblings
  /** Read for each request, since a reload changes them for open links, too. */
  readonly #timeouts = (): ServerTimeouts => this.#options.timeouts

  /** `bearer`: the token for every request over HTTP. */
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
    this.#sse = new SseSiblings(environment.httpIds)
    this.#spare = new Spare({
      options: environment.spare,
      isAllowed: () =>
        !this.#isClosed && this.#options.spare === 1 && this.#options.url === undefined && environment.soleHost === undefined,
      start: (isTaken) => this.#startProcess(isTaken),
      ended: ({ connection }) => connection.channel.closed,
      stop: ({ connection }) => connection.channel.close(),
    })
  }

  /** Uses changed options, none of which requires a restart. */
  adopt(options: ServerOptions): void {
    this.#options = options
    for (const channel of this.#channels) channel.resize?.(limitsOf(options))
    if (options.spare === 0) void this.#spare.drop()
  }

  /** The last `count` lines of stderr of the main link's process, which may have ended (F-08). */
  stderrTail(count: number): readonly string[] {
    return this.#mainProcess?.process?.stderrTail(count) ?? []
  }

  /** A legacy session uses this server: prepares a spare for its link. */
  sessionSeen(): void {
    this.#spare.want()
  }

  /** The running processes of the server. */
  get processes(): readonly Pick<ServerProcess, 'pid' | 'startedAt'>[] {
    // Cast: only channels of processes have this member.
    const processes = [...[...this.#channels].map((channel) => (channel as Partial<PipeChannel>).process), this.#companion]
    return processes.filter((process) => process !== undefined)
  }

  /** Opens a further link for one caller. */
  async dial(host: DialedFor, events: LinkEvents): Promise<Link> {
    const { link } = await this.#dial(host, events, { isWanted: wanted })
    this.#spare.prepare()
    return link
  }

  /** Whether the failure is the end of a process that we started. Any other failure is a failure to connect. */
  isCrash(failure: unknown): boolean {
    const { launch, url } = this.#options
    return launch !== undefined && isProcessEnd(failure) && (url === undefined || this.#companion === undefined)
  }

  /** Whether a modern server may also speak the legacy era: no refusal is known. */
  get mayBeLegacy(): boolean {
    return this.#options.era === 'auto' && this.#states.now.takesInitialize !== false
  }

  /** The same for its hosts. The main link of the only host of a pipe has the era of that host. */
  get mayServeLegacy(): boolean {
    return this.#environment.soleHost === undefined && this.mayBeLegacy
  }

  /** Whether the server may speak the modern era: it is not known as a legacy server. */
  get mayBeModern(): boolean {
    return this.#options.era === 'auto' && this.#environment.memory.verdict(this.#options)?.era !== 'legacy'
  }

  /** Whether a server with a modern main link has also accepted `initialize`. */
  get takesInitialize(): boolean {
    return this.#states.now.takesInitialize === true
  }

  /** Opens a legacy link to a server with a modern main link; `undefined`: the server refuses the legacy era (BRIDGING 3.0 rule 0). */
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
      // The server may only have been slow, so the result is not stored.
      else if (mayBeOfOtherEra(error)) this.#states.send({ type: 'takes-initialize', takesInitialize: false })
      if (!this.mayBeLegacy) this.#reports.send({ type: 'legacy-refused' })
      return undefined
    }
  }

  /** Sends `initialize` again to a server with a modern main link that accepted it before. Returns the era; `undefined`: unknown. */
  async probeLegacy(events: LinkEvents): Promise<Era | undefined> {
    try {
      const link = await this.dialLegacy({ declared: SUPERSET }, events)
      await link?.close()
      return link === undefined ? 'modern' : 'legacy'
    } catch {
      return undefined
    }
  }

  /** Removes the stored era of the server. */
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
   * Opens the main link and detects the era. A companion process is started first. `isWanted`: whether a call waits for the link.
   * `prefersLegacy`: the only host is legacy, so that a dual-era server gets a legacy link (BRIDGING 3.0 rules 0, 4).
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

  /** Returns `undefined` if the server refuses `initialize` as its first message, or if its era is known. */
  async #dialLegacyFirst(host: DialedFor, events: LinkEvents, isWanted: () => boolean): Promise<Link | undefined> {
    const era = this.#environment.memory.verdict(this.#options)?.era
    if (era === 'legacy' || !this.mayBeLegacy) return undefined
    try {
      const { link } = await this.#dial(host, events, { isWanted, isMain: true, era: 'legacy' })
      // The era is not stored, because the server was not probed and may be modern, too.
      this.#keepTakesInitialize(true)
      return link
    } catch (error) {
      if (!isOfOtherEra(error) && !mayBeOfOtherEra(error)) throw error
      this.#keepTakesInitialize(false)
      return undefined
    }
  }

  async #dialAny(host: DialedFor, events: LinkEvents, isWanted: () => boolean): Promise<Link> {
    const options = this.#options
    const { memory } = this.#environment
    const { link, verdict } = await this.#detect(host, events, isWanted).catch((error: unknown) => {
      // A stored era that is out of date is removed. After a refusal the era is detected again at once (B213).
      const hadVerdict = memory.verdict(options) !== undefined
      const isRefusal = isOfOtherEra(error)
      if (isRefusal || isTimeout(error)) this.dropVerdict()
      if (!hadVerdict || !isRefusal || options.era !== 'auto') throw error
      return this.#dial(host, events, { isWanted, isMain: true })
    })
    const takesInitialize = verdict.era === 'modern' ? this.#states.now.takesInitialize : undefined
    memory.keepVerdict(options, takesInitialize === undefined ? verdict : { ...verdict, takesInitialize })
    return link
  }

  /** Dials the main link. A server over HTTP that broke at `BROKEN_PROBES` probes in a row gets `initialize` instead, once. */
  async #detect(host: DialedFor, events: LinkEvents, isWanted: () => boolean): Promise<Dialed> {
    const isSpared = this.#brokenProbes >= BROKEN_PROBES
    try {
      const dialed = await this.#dial(host, events, { isWanted, isMain: true, ...(isSpared && { era: 'legacy' }) })
      this.#brokenProbes = 0
      return dialed
    } catch (error) {
      // A process that ended at the probe is gone for a while.
      if (isUnreachable(error)) throw error
      this.#brokenProbes = !isSpared && this.#isBrokenProbe(error) ? this.#brokenProbes + 1 : 0
      if (!isSpared || !isOfOtherEra(error)) throw error
      return this.#detect(host, events, isWanted)
    }
  }

  #isBrokenProbe(error: unknown): boolean {
    const { url, era } = this.#options
    const isProbed = url !== undefined && era === 'auto' && this.#environment.memory.verdict(this.#options) === undefined
    return isProbed && error instanceof Failure && error.kind === 'lost'
  }

  /** Detects the era of the server over a channel of its own; `undefined`: unknown. */
  async probe(): Promise<Era | undefined> {
    const options = this.#options
    if (options.url === undefined || options.era !== 'auto') return undefined
    const channel = this.#opened(this.#environment.openers.http(options, this.#bearer))
    try {
      return await probeEra(channel, await this.#dialing({ declared: SUPERSET }))
    } catch {
      return undefined
    } finally {
      await channel.close()
    }
  }

  /** Closes all channels and processes, also those that are being opened. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#environment.starts.review()
    await Promise.all([this.#spare.release(), ...[...this.#channels].map((channel) => channel.close()), this.#companion?.stop()])
  }

  /** Tracks an opened channel until it is closed. */
  #opened<C extends Channel>(channel: C): C {
    if (this.#isClosed) throw new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
    this.#channels.add(channel)
    void channel.closed.then(() => this.#channels.delete(channel))
    return channel
  }

  async #dial(host: DialedFor, events: LinkEvents, choice: DialChoice): Promise<Dialed> {
    const dialed = await this.#dialChannel(host, events, choice)
    this.#environment.linkOpened(dialed.link, this.#options)
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
    return this.#companion === undefined ? dialHttp(open, transport, dialing) : this.#dialWhenReady(open, transport, dialing)
  }

  async #dialing({ declared, clientInfo, revision, principal }: DialedFor): Promise<Omit<Dialing, 'events'>> {
    const { sweeper, httpIds, identity, instance, memory, soleHost } = this.#environment
    const options = this.#options
    return {
      era: options.era,
      // While the main link is up, further links have its era, even if the stored verdict is too old for the next start.
      verdict: this.#states.now.link ?? memory.verdict(options),
      declared,
      usesClientCredentials: options.credential?.mode === 'client',
      identity,
      clientInfo,
      revision,
      position: { instance, hops: (await soleHost)?.hops ?? 0 },
      timeouts: this.#timeouts,
      sweeper,
      httpIds,
      sseIds: this.#sse.idsFor(principal),
    }
  }

  /** Repeats refused connections until the start time-out, because a started process answers only when it is ready. */
  async #dialWhenReady(
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
    const companion = await this.#environment.openers
      .companion(() => this.#options)
      .catch((error: unknown) => {
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

  /** Returns the spare, or starts a process. */
  async #takeProcess(isWanted: () => boolean, isMain: boolean): Promise<Started> {
    const spare = this.#spare.take()
    this.#environment.starts.review()
    return spare === undefined ? this.#startProcess(isWanted, isMain) : spare.catch(() => this.#startProcess(isWanted, isMain))
  }

  async #startProcess(isWanted: () => boolean, isMain = false): Promise<Started> {
    const slot = await this.#acquire(isWanted)
    try {
      const channel = this.#opened(this.#environment.openers.pipe(() => this.#options))
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

  /** Waits for a start slot. A closed dialer does not wait. */
  #acquire(isWanted: () => boolean): Promise<StartSlot> {
    return this.#environment.starts.acquire(() => this.#isClosed || isWanted())
  }
}

/** Failures by which a server shows that it does not speak the dialed era (BRIDGING 5.2). */
const OTHER_ERA: ReadonlySet<FailureKind> = new Set(['not_found', 'bad_response', 'version'])
const isOfOtherEra = (error: unknown): boolean =>
  error instanceof ServerError || (error instanceof Failure && OTHER_ERA.has(error.kind))

/** Whether the server may have ignored a message of the other era, or ended because of it. */
const mayBeOfOtherEra = (error: unknown): boolean =>
  error instanceof Failure && (error.kind === 'timeout' || error.kind === 'exited')

const isTimeout = (error: unknown): boolean => error instanceof Failure && error.kind === 'timeout'

const isUnreachable = (error: unknown): boolean => {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof Failure && cause.kind === 'unreachable') return true
  return false
}

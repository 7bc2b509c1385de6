/**
 * The pool of links to one server, without its main link. A link is opened on first use (BRIDGING 3.0). The link of a session is closed
 * with the session. A link of several callers is closed after an idle time, or when another caller needs a link and `limits.links` is
 * reached.
 */
import type { Link } from '../../era/server/link.ts'
import type { Call, Caller, Capabilities, HostSession, Outcome } from '../../rpc/call.ts'
import { unlessCancelled } from '../../rpc/cancellation.ts'
import type { Sweepable } from '../../rpc/sweeper.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import { LinkTaskTable } from './link-task-table.ts'
import { levelFor, linkKeyOf, ownerOf } from '../link-owner.ts'
import type { LinkKey, LinkOwner, OwnedLink } from '../link-owner.ts'
import type { ServerOptions, Sharing } from '../options.ts'
import { isForgotten } from '../pacing/retries.ts'
import { overloaded, WaitingCalls } from '../pacing/waiting-calls.ts'

interface PooledLink {
  readonly owner: LinkOwner
  readonly link: Promise<Link>
  opened: Link | undefined
  /** Number of calls that use the link. */
  leases: number
  /** When the last call ended. */
  idleSinceMs: number
  /** After a failed call, the server may still send requests for it. Until this time, no other host that accepts requests gets the link. */
  quarantinedUntilMs: number
}

/** How long a server may continue to work on a failed call. */
const QUARANTINE_MS = 30_000

/** A one-entry cache of a link key. */
interface CachedKey extends Pick<Caller, 'principal' | 'capabilities' | 'clientInfo'> {
  readonly sharing: Sharing
  readonly key: LinkKey
}

export interface LinksEnvironment {
  readonly open: (owner: LinkOwner) => Promise<Link>
  /** A legacy session made its first call. */
  readonly sessionSeen: () => void
  readonly closed: (owner: LinkOwner) => void
  /** Whether the server sends its requests for all calls over one channel. A link then serves one caller at a time (BRIDGING 3.0 b). */
  readonly isShared: () => boolean
  readonly nowMs: () => number
}

/** Runs `call` on `link`; `level`: the log level to request first, if any. */
export type Use = (call: Call, link: Link, level: LogLevel | undefined) => Promise<Outcome>

interface SessionLinks {
  readonly all: Set<PooledLink>
  /** Removes the callback at the end of the session. */
  unsubscribe: () => void
  /** One-entry cache: the link of the last call. It is valid while the capabilities of the session are unchanged. */
  cached: { readonly pooled: PooledLink; readonly capabilities: Capabilities; readonly sharing: Sharing } | undefined
}

export class Links implements Sweepable {
  #options: ServerOptions
  readonly #environment: LinksEnvironment
  /** All links that are open or being opened. */
  readonly #all = new Map<LinkOwner, PooledLink>()
  /** Links for new calls, by key. A link that is not in this map is retired: it is closed when it is unused. */
  readonly #active = new Map<string, PooledLink>()
  readonly #bySession = new Map<HostSession, SessionLinks>()
  readonly #tasks: LinkTaskTable
  /** Calls for which no further link may be opened, and that need one of their own. */
  readonly #waiting = new WaitingCalls('link', 'limits.links')
  #serial = 0
  /** The key for the last caller without a session. */
  #cachedKey: CachedKey | undefined
  /** The server is stopped. While its main link closes, calls that waited for a slot can still arrive. */
  #isClosed = false

  constructor(options: ServerOptions, environment: LinksEnvironment) {
    this.#options = options
    this.#environment = environment
    this.#tasks = new LinkTaskTable(environment.nowMs)
  }

  /** Uses changed options, none of which requires a restart. Open links are kept. */
  adopt(options: ServerOptions): void {
    this.#options = options
    this.#waiting.admit()
  }

  get size(): number {
    return this.#all.size
  }

  /** The owners of all links that are open or being opened. */
  get owners(): readonly LinkOwner[] {
    return [...this.#all.keys()]
  }

  /** Whether the link of this owner is open or being opened. */
  has(owner: LinkOwner): boolean {
    return this.#all.has(owner)
  }

  of(owner: LinkOwner): Link | undefined {
    return this.#all.get(owner)?.opened
  }

  /** The open links that this session uses. */
  ofSession(session: HostSession): Link[] {
    return this.withOwners(session).map(({ link }) => link)
  }

  /** The same with the owners of the links. */
  withOwners(session: HostSession): OwnedLink[] {
    return openOf([...(this.#bySession.get(session)?.all ?? [])])
  }

  /** The open links that calls of this caller may use, without the main link. */
  ofCaller({ session, principal }: Pick<Caller, 'session' | 'principal'>): OwnedLink[] {
    if (this.#all.size === 0) return []
    if (session !== undefined) return this.withOwners(session)
    const own = [...this.#all.values()].filter(
      ({ owner }) => owner.isolation === 'principal' && owner.principal === principal && owner.sessions.size === 0,
    )
    return openOf(own)
  }

  /** Runs `use` on the caller's link, or on the link with the requested task. The link is not closed before `use` ends. */
  async lease(call: Call, use: Use): Promise<Outcome> {
    // Cancelled while the server was starting: no link is opened for it.
    if (call.signal.aborted) throw new Failure('cancelled', 'cancelled before it was sent', { executed: 'no' })
    const pooled = this.#taken(call) ?? (await this.#waited(call))
    const { owner } = pooled
    try {
      const link = pooled.opened ?? (await awaited(pooled, call))
      const outcome = await use(call, link, levelFor(owner, call.logLevel))
      this.#tasks.track(call, outcome, owner)
      return outcome
    } catch (error) {
      this.#tasks.trackError(call, error, owner)
      // The server lost the session of this link. New calls get another link; pending calls may still be answered.
      if (isForgotten(error)) this.#retire(pooled)
      if (error instanceof Failure && pooled.opened !== undefined)
        pooled.quarantinedUntilMs = this.#environment.nowMs() + QUARANTINE_MS
      throw error
    } finally {
      pooled.leases--
      pooled.idleSinceMs = this.#environment.nowMs()
      if (owner.isolation === 'call' || this.#isRetired(pooled)) this.#retire(pooled)
      this.#waiting.admit()
    }
  }

  /** The link for calls of this caller. Rejects if it cannot be opened. */
  async opened(caller: Caller): Promise<Link> {
    const pooled = this.#pooledFor(caller)
    if (pooled === undefined) throw overloaded(this.#reached(), 'limits.links')
    return pooled.link
  }

  /** A server reported the end of a task; `owner`: of the link of this report. */
  taskEnded(id: string, owner: LinkOwner | undefined): void {
    this.#tasks.ended(id, owner)
  }

  /** Closes unused links that are retired, or idle too long. */
  sweep(): void {
    const nowMs = this.#environment.nowMs()
    this.#tasks.removeExpired()
    for (const pooled of this.#all.values()) {
      const isIdle = pooled.owner.isolation !== 'session' && nowMs - pooled.idleSinceMs >= this.#options.idleStopMs
      if (isIdle || this.#isRetired(pooled)) this.#closeIfUnused(pooled)
    }
  }

  /** Retires all open links. */
  retireAll(): void {
    for (const pooled of this.#all.values()) this.#retire(pooled)
  }

  /** Closes all links. No link is opened afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#waiting.admit()
    // A session may outlive this server. It must no longer refer to these links.
    for (const { unsubscribe } of this.#bySession.values()) unsubscribe()
    this.#bySession.clear()
    await Promise.all([...this.#all.values()].map((pooled) => this.#close(pooled)))
  }

  /** The link for this call, which counts as a user of it. */
  #taken(call: Call): PooledLink | undefined {
    const pooled = this.#pooledOfTask(call) ?? this.#pooledFor(call.caller)
    if (pooled !== undefined) pooled.leases++
    return pooled
  }

  #waited(call: Call): Promise<PooledLink> {
    const { maxQueued } = this.#options.limits
    if (this.#waiting.size >= maxQueued) throw overloaded(`${this.#reached()}, and limits.queue (${maxQueued})`, 'limits.links')
    return this.#waiting.wait(call.signal, () => this.#taken(call))
  }

  #reached(): string {
    return `limits.links (${this.#options.limits.maxLinks}) reached`
  }

  #pooledOfTask(call: Call): PooledLink | undefined {
    const owner = this.#tasks.ownerFor(call)
    return owner && this.#all.get(owner)
  }

  /**
   * The link of the caller. A modern host that accepts server requests gets an unused link of its key if the server shares one channel.
   * `undefined`: `limits.links` is reached, and all are in use.
   */
  #pooledFor(caller: Caller): PooledLink | undefined {
    const { session } = caller
    const { sharing } = this.#options
    const own = session && this.#pooledOfSession(session, caller, sharing)
    if (own !== undefined) return own
    const wanted = this.#wanted(caller, sharing)
    const isExclusive = session === undefined && Object.keys(wanted.declared).length > 0 && this.#environment.isShared()
    let quarantined: PooledLink | undefined
    for (let at = 0; ; at++) {
      const key = at === 0 ? wanted.key : `${wanted.key} ${at}`
      const existing = this.#active.get(key)
      if (existing !== undefined && isExclusive && existing.leases > 0) continue
      if (existing !== undefined && isExclusive && existing.quarantinedUntilMs > this.#environment.nowMs()) {
        quarantined ??= existing
        continue
      }
      const pooled =
        existing ?? (quarantined !== undefined && this.#isFull(wanted) ? quarantined : this.#open({ ...wanted, key }))
      if (pooled === undefined) return undefined
      if (caller.principal !== pooled.owner.principal) pooled.owner.isMixed = true
      if (session !== undefined) this.#join(pooled, session, caller)
      return pooled
    }
  }

  /** The key for a call. Hosts without a session repeat the same capability objects (`era/host/capability-cache`), so the key is cached. */
  #wanted(caller: Caller, sharing: Sharing): LinkKey {
    const cached = this.#cachedKey
    const { session, principal, capabilities, clientInfo } = caller
    if (
      session === undefined &&
      cached?.capabilities === capabilities &&
      cached.principal === principal &&
      cached.clientInfo === clientInfo &&
      cached.sharing === sharing
    )
      return cached.key
    const key = linkKeyOf(caller, sharing, () => ++this.#serial)
    if (session === undefined && key.isolation !== 'call') this.#cachedKey = { principal, capabilities, clientInfo, sharing, key }
    return key
  }

  /** The link of the session's last call, if it is still valid. */
  #pooledOfSession(session: HostSession, { capabilities }: Caller, sharing: Sharing): PooledLink | undefined {
    const used = this.#bySession.get(session)
    const cached = used?.cached
    const isSame = cached?.capabilities === capabilities && cached.sharing === sharing && !this.#isRetired(cached.pooled)
    const pooled = isSame ? cached.pooled : sharing === 'session' ? used?.all.values().next().value : undefined
    if (pooled !== undefined) pooled.owner.latest = session
    return pooled
  }

  /** Whether `limits.links` is reached. Links of sessions do not count: the limit of sessions applies to them. */
  #isFull(wanted: LinkKey): boolean {
    return wanted.isolation !== 'session' && this.#counted(wanted).length >= this.#options.limits.maxLinks
  }

  /** The links that count towards the same limit. */
  #counted({ principal }: LinkKey): PooledLink[] {
    return [...this.#all.values()].filter(({ owner }) => owner.isolation !== 'session' && owner.principal === principal)
  }

  /** Retires the link with the longest idle time, if there is one. Its caller gets a new link with its next call. */
  #evictIdle(wanted: LinkKey): void {
    const idle = this.#counted(wanted).filter(({ leases, owner }) => leases === 0 && !this.#tasks.needs(owner))
    const [longest] = idle.toSorted((a, b) => a.idleSinceMs - b.idleSinceMs)
    if (longest !== undefined) this.#retire(longest)
  }

  #open(wanted: LinkKey): PooledLink | undefined {
    if (this.#isClosed) throw new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
    if (this.#isFull(wanted)) this.#evictIdle(wanted)
    if (this.#isFull(wanted)) return undefined
    const owner = ownerOf(wanted)
    const link = this.#environment.open(owner)
    const pooled: PooledLink = {
      owner,
      link,
      opened: undefined,
      leases: 0,
      idleSinceMs: this.#environment.nowMs(),
      quarantinedUntilMs: 0,
    }
    this.#all.set(owner, pooled)
    this.#active.set(owner.key, pooled)
    const closed = (): void => this.#closed(pooled)
    link.then((opened) => {
      pooled.opened = opened
      void opened.closed.then(closed)
    }, closed)
    return pooled
  }

  /** Adds the session to the users of the link, until the session ends. */
  #join(pooled: PooledLink, session: HostSession, { capabilities }: Caller): void {
    const { owner } = pooled
    const { sharing } = this.#options
    owner.sessions.add(session)
    owner.latest = session
    const known = this.#bySession.get(session)
    const used = known ?? { all: new Set(), unsubscribe: () => undefined, cached: undefined }
    used.all.add(pooled)
    used.cached = sharing === 'call' ? undefined : { pooled, capabilities, sharing }
    if (known !== undefined) return
    this.#bySession.set(session, used)
    // Last, since a session that has ended meanwhile calls back at once.
    used.unsubscribe = session.onEnd(() => this.#ended(session))
    this.#environment.sessionSeen()
  }

  #ended(session: HostSession): void {
    const used = this.#bySession.get(session)?.all ?? []
    this.#bySession.delete(session)
    for (const pooled of used) {
      const { owner } = pooled
      owner.sessions.delete(session)
      if (owner.latest === session) owner.latest = [...owner.sessions].at(-1)
      if (owner.isolation === 'session') this.#retire(pooled)
    }
  }

  #isRetired(pooled: PooledLink): boolean {
    return this.#active.get(pooled.owner.key) !== pooled
  }

  /** Retires the link: new calls get another one, and it is closed when it is unused. */
  #retire(pooled: PooledLink): void {
    this.#remove(pooled)
    this.#closeIfUnused(pooled)
  }

  #remove(pooled: PooledLink): void {
    const { key, sessions } = pooled.owner
    if (!this.#isRetired(pooled)) this.#active.delete(key)
    for (const session of sessions) this.#bySession.get(session)?.all.delete(pooled)
  }

  #closeIfUnused(pooled: PooledLink): void {
    if (pooled.leases === 0 && this.#all.has(pooled.owner) && !this.#tasks.needs(pooled.owner)) void this.#close(pooled)
  }

  /** Removes a link that is closed, or is being closed. */
  #closed(pooled: PooledLink): void {
    if (this.#all.delete(pooled.owner)) this.#environment.closed(pooled.owner)
    this.#tasks.removeOf(pooled.owner)
    this.#remove(pooled)
    this.#waiting.admit()
  }

  async #close(pooled: PooledLink): Promise<void> {
    this.#closed(pooled)
    const link = await pooled.link.catch(() => undefined)
    await link?.close()
  }
}

const openOf = (all: readonly PooledLink[]): OwnedLink[] =>
  all.flatMap(({ owner, opened }) => (opened === undefined ? [] : [{ owner, link: opened }]))

/** Waits for the link to open, or for the cancellation of the call. */
const awaited = async ({ owner, link }: PooledLink, call: Call): Promise<Link> => {
  owner.waiting.add(call)
  try {
    return await unlessCancelled(link, call.signal)
  } finally {
    owner.waiting.delete(call)
  }
}

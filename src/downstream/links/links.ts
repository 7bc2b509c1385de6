/**
 * The links to one server beside its main link: which caller gets which. A link is opened on first use (BRIDGING 3.0). A session's
 * own link is closed when the session ends; a link of several callers is closed when it has been idle too long, or when its place is
 * needed for another caller (`limits.links`).
 */
import type { Link } from '../../era/server/link.ts'
import type { Call, Caller, Capabilities, HostSession, Outcome } from '../../rpc/call.ts'
import type { Sweepable } from '../../rpc/sweeper.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import { LinkTaskTable } from './link-task-table.ts'
import { levelFor, linkKeyOf, ownerOf } from '../link-owner.ts'
import type { LinkKey, LinkOwner } from '../link-owner.ts'
import type { ServerOptions, Sharing } from '../options.ts'
import { isForgotten } from '../pacing/retries.ts'

interface PooledLink {
  readonly owner: LinkOwner
  readonly link: Promise<Link>
  opened: Link | undefined
  /** Calls that are on it. */
  leases: number
  idleSinceMs: number
  /** A call on it was given up: the server may still ask for it, and the next host that can be asked would be asked instead. */
  quarantinedUntilMs: number
}

/** How long a server may go on with a call that was given up. */
const QUARANTINE_MS = 30_000

interface LatestKey extends Pick<Caller, 'principal' | 'capabilities' | 'clientInfo'> {
  readonly sharing: Sharing
  readonly key: LinkKey
}

export interface LinksEnvironment {
  readonly open: (owner: LinkOwner) => Promise<Link>
  /** A legacy session calls for the first time. */
  readonly sessionSeen: () => void
  /** A link of this owner was closed. */
  readonly closed: (owner: LinkOwner) => void
  /** The server sends its messages for all calls over one channel, so that only one caller at a time may be asked (BRIDGING 3.0 b). */
  readonly isShared: () => boolean
  readonly nowMs: () => number
}

/** Runs `call` on its caller's link; `level`: what the server is to be asked for first, if anything. */
export type Use = (call: Call, link: Link, level: LogLevel | undefined) => Promise<Outcome>

/** The links of one session. */
interface SessionLinks {
  readonly all: Set<PooledLink>
  /** Removes the callback at the end of the session. */
  leave: () => void
  /** What its calls find again without a search, as long as it says the same of itself. */
  usual: { readonly pooled: PooledLink; readonly capabilities: Capabilities; readonly sharing: Sharing } | undefined
}

export class Links implements Sweepable {
  #options: ServerOptions
  readonly #environment: LinksEnvironment
  /** Everything that is open or opening. */
  readonly #all = new Map<LinkOwner, PooledLink>()
  /** What calls find. A link that is not listed here is retired: it is closed once unused. */
  readonly #found = new Map<string, PooledLink>()
  readonly #bySession = new Map<HostSession, SessionLinks>()
  readonly #tasks: LinkTaskTable
  #serial = 0
  /** One-entry cache: the key for the last caller without a session. */
  #latest: LatestKey | undefined
  /** The server is stopped. Its main link may still be closing, so that calls that waited for a free slot still come here. */
  #isClosed = false

  constructor(options: ServerOptions, environment: LinksEnvironment) {
    this.#options = options
    this.#environment = environment
    this.#tasks = new LinkTaskTable(environment.nowMs)
  }

  /** Other options, none of which asks for a restart: links that are open stay. */
  adopt(options: ServerOptions): void {
    this.#options = options
  }

  get size(): number {
    return this.#all.size
  }

  of(owner: LinkOwner): Link | undefined {
    return this.#all.get(owner)?.opened
  }

  /** The open links that this session uses. */
  ofSession(session: HostSession): Link[] {
    return this.withOwners(session).map(({ link }) => link)
  }

  withOwners(session: HostSession): { readonly owner: LinkOwner; readonly link: Link }[] {
    const used = [...(this.#bySession.get(session)?.all ?? [])]
    return used.flatMap(({ owner, opened }) => (opened === undefined ? [] : [{ owner, link: opened }]))
  }

  /** The open links that calls of this caller may go over, beside the main one. */
  ofCaller({ session, principal }: Pick<Caller, 'session' | 'principal'>): { readonly owner: LinkOwner; readonly link: Link }[] {
    if (this.#all.size === 0) return []
    if (session !== undefined) return this.withOwners(session)
    const own = [...this.#all.values()].filter(
      ({ owner }) => owner.isolation === 'principal' && owner.principal === principal && owner.sessions.size === 0,
    )
    return own.flatMap(({ owner, opened }) => (opened === undefined ? [] : [{ owner, link: opened }]))
  }

  /** Runs `use` on the caller's link, or on the one that holds the requested task; the link is not closed meanwhile. */
  async lease(call: Call, use: Use): Promise<Outcome> {
    const pooled = this.#pooledOfTask(call) ?? this.#pooledFor(call.caller)
    const { owner } = pooled
    pooled.leases++
    try {
      const link = pooled.opened ?? (await awaited(pooled, call))
      const outcome = await use(call, link, levelFor(owner, call.logLevel))
      this.#tasks.track(call, outcome, owner)
      return outcome
    } catch (error) {
      this.#tasks.trackError(call, error, owner)
      // The server has lost the session of this link: new calls get another link; open calls may still be answered.
      if (isForgotten(error)) this.#retire(pooled)
      if (error instanceof Failure) pooled.quarantinedUntilMs = this.#environment.nowMs() + QUARANTINE_MS
      throw error
    } finally {
      pooled.leases--
      pooled.idleSinceMs = this.#environment.nowMs()
      if (owner.isolation === 'call' || this.#isRetired(pooled)) this.#retire(pooled)
    }
  }

  /** The link that calls of this caller go over. Rejects if it cannot be opened. */
  async opened(caller: Caller): Promise<Link> {
    return this.#pooledFor(caller).link
  }

  /** A server says that a task has ended; `owner`: of the link that it said it on. */
  taskEnded(id: string, owner: LinkOwner | undefined): void {
    this.#tasks.ended(id, owner)
  }

  /** Closes links that are retired, or idle too long; called by the owner's clock. */
  sweep(): void {
    const nowMs = this.#environment.nowMs()
    this.#tasks.forgetExpired()
    for (const pooled of this.#all.values()) {
      const isIdle = pooled.owner.isolation !== 'session' && nowMs - pooled.idleSinceMs >= this.#options.idleStopMs
      if (isIdle || this.#isRetired(pooled)) this.#closeIfUnused(pooled)
    }
  }

  /** No call finds any of those that are open; each is closed once nothing uses it. */
  retireAll(): void {
    for (const pooled of this.#all.values()) this.#retire(pooled)
  }

  /** No link is opened any more, and no further session uses the server. */
  async close(): Promise<void> {
    this.#isClosed = true
    // A session may outlive this server: nothing of it may refer to these links any more.
    for (const { leave } of this.#bySession.values()) leave()
    this.#bySession.clear()
    await Promise.all([...this.#all.values()].map((pooled) => this.#close(pooled)))
  }

  #pooledOfTask(call: Call): PooledLink | undefined {
    const owner = this.#tasks.holderFor(call)
    return owner && this.#all.get(owner)
  }

  /** The caller's link. Modern hosts that can be asked get one to themselves while they use it: the first free of their key. */
  #pooledFor(caller: Caller): PooledLink {
    const { session } = caller
    const { sharing } = this.#options
    const own = session && this.#pooledAgain(session, caller, sharing)
    if (own !== undefined) return own
    const wanted = this.#wanted(caller, sharing)
    const isExclusive = session === undefined && Object.keys(wanted.declared).length > 0 && this.#environment.isShared()
    let quarantined: PooledLink | undefined
    for (let at = 0; ; at++) {
      const key = at === 0 ? wanted.key : `${wanted.key} ${at}`
      const existing = this.#found.get(key)
      if (existing !== undefined && isExclusive && existing.leases > 0) continue
      if (existing !== undefined && isExclusive && existing.quarantinedUntilMs > this.#environment.nowMs()) {
        quarantined ??= existing
        continue
      }
      const pooled =
        existing ?? (quarantined !== undefined && this.#isFull(wanted) ? quarantined : this.#open({ ...wanted, key }))
      if (caller.principal !== pooled.owner.principal) pooled.owner.isMixed = true
      if (session !== undefined) this.#join(pooled, session, caller)
      return pooled
    }
  }

  /** Hosts without a session introduce themselves by the same objects again (`era/host/capability-cache`). */
  #wanted(caller: Caller, sharing: Sharing): LinkKey {
    const latest = this.#latest
    const { session, principal, capabilities, clientInfo } = caller
    if (
      session === undefined &&
      latest?.capabilities === capabilities &&
      latest.principal === principal &&
      latest.clientInfo === clientInfo &&
      latest.sharing === sharing
    )
      return latest.key
    const key = linkKeyOf(caller, sharing, () => ++this.#serial)
    if (session === undefined && key.isolation !== 'call') this.#latest = { principal, capabilities, clientInfo, sharing, key }
    return key
  }

  /** The link of the session's calls before this one. */
  #pooledAgain(session: HostSession, { capabilities }: Caller, sharing: Sharing): PooledLink | undefined {
    const used = this.#bySession.get(session)
    const usual = used?.usual
    const isSame = usual?.capabilities === capabilities && usual.sharing === sharing && !this.#isRetired(usual.pooled)
    const pooled = isSame ? usual.pooled : sharing === 'session' ? used?.all.values().next().value : undefined
    if (pooled !== undefined) pooled.owner.latest = session
    return pooled
  }

  /** Links of sessions are bounded by the limit of sessions, not by this one. */
  #isFull(wanted: LinkKey): boolean {
    return wanted.isolation !== 'session' && this.#beside(wanted).length >= this.#options.limits.maxLinks
  }

  /** The links that count towards the limit that this one is opened within. */
  #beside({ principal }: LinkKey): PooledLink[] {
    return [...this.#all.values()].filter(({ owner }) => owner.isolation !== 'session' && owner.principal === principal)
  }

  /** Closes the link that has been idle longest, if one of them is idle: its caller gets another when it calls again. */
  #makeRoom(wanted: LinkKey): void {
    const idle = this.#beside(wanted).filter(({ leases, owner }) => leases === 0 && !this.#tasks.needs(owner))
    const [longest] = idle.toSorted((a, b) => a.idleSinceMs - b.idleSinceMs)
    if (longest !== undefined) this.#retire(longest)
  }

  #open(wanted: LinkKey): PooledLink {
    if (this.#isClosed) throw new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
    const { maxLinks } = this.#options.limits
    if (this.#isFull(wanted)) this.#makeRoom(wanted)
    if (this.#isFull(wanted))
      throw new Failure('overloaded', `limits.links (${maxLinks}) reached`, {
        executed: 'no',
        retryable: true,
        limit: 'limits.links',
      })
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
    this.#found.set(owner.key, pooled)
    const closed = (): void => this.#closed(pooled)
    link.then((opened) => {
      pooled.opened = opened
      void opened.closed.then(closed)
    }, closed)
    return pooled
  }

  /** The session uses this link until it ends. */
  #join(pooled: PooledLink, session: HostSession, { capabilities }: Caller): void {
    const { owner } = pooled
    const { sharing } = this.#options
    owner.sessions.add(session)
    owner.latest = session
    let used = this.#bySession.get(session)
    if (used === undefined) {
      this.#bySession.set(session, (used = { all: new Set(), leave: () => undefined, usual: undefined }))
      used.leave = session.onEnd(() => this.#ended(session))
      this.#environment.sessionSeen()
    }
    used.all.add(pooled)
    used.usual = sharing === 'call' ? undefined : { pooled, capabilities, sharing }
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
    return this.#found.get(pooled.owner.key) !== pooled
  }

  /** Retires the link: new calls do not find it, and it is closed once it is unused. */
  #retire(pooled: PooledLink): void {
    this.#remove(pooled)
    this.#closeIfUnused(pooled)
  }

  #remove(pooled: PooledLink): void {
    const { key, sessions } = pooled.owner
    if (!this.#isRetired(pooled)) this.#found.delete(key)
    for (const session of sessions) this.#bySession.get(session)?.all.delete(pooled)
  }

  #closeIfUnused(pooled: PooledLink): void {
    if (pooled.leases === 0 && this.#all.has(pooled.owner) && !this.#tasks.needs(pooled.owner)) void this.#close(pooled)
  }

  /** It is closed, or about to be. */
  #closed(pooled: PooledLink): void {
    if (this.#all.delete(pooled.owner)) this.#environment.closed(pooled.owner)
    this.#tasks.forget(pooled.owner)
    this.#remove(pooled)
  }

  async #close(pooled: PooledLink): Promise<void> {
    this.#closed(pooled)
    const link = await pooled.link.catch(() => undefined)
    await link?.close()
  }
}

const awaited = async ({ owner, link }: PooledLink, call: Call): Promise<Link> => {
  owner.waiting.add(call)
  try {
    return await link
  } finally {
    owner.waiting.delete(call)
  }
}

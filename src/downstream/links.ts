/**
 * The links to one server beside its main one: which caller gets which, opened on first use, closed when nobody needs them
 * (BRIDGING 3.0). Two calls that differ in any part of the key never meet on a legacy link.
 */
import { declaresApps, UI_EXTENSION } from '../catalog/apps.ts'
import type { Declared, Link } from '../era/link.ts'
import type { Call, Caller, HostSession, Outcome } from '../rpc/call.ts'
import type { Sweepable } from '../rpc/sweeper.ts'
import { Failure } from '../wire/failure.ts'
import { HeldTasks } from './held-tasks.ts'
import type { ServerOptions } from './options.ts'
import { isForgotten } from './retries.ts'

/** Whom a link serves: the isolation id and the capabilities declared on it. */
export interface LinkOwner {
  readonly key: string
  readonly principal: string
  readonly declared: Declared
  /** A legacy session whose end closes the link. */
  readonly caller: Caller
  /** The calls that wait for it to be opened, oldest first. */
  readonly waiting: Set<Call>
}

interface Held {
  readonly owner: LinkOwner
  /** Its session is over; only its tasks still need it. */
  isLeft: boolean
  readonly link: Promise<Link>
  opened: Link | undefined
  leases: number
  idleSinceMs: number
}

export interface LinksEnvironment {
  readonly open: (owner: LinkOwner) => Promise<Link>
  /** The server's messages come on one way for all calls, so that only one caller at a time may be asked (BRIDGING 3.0 b). */
  readonly isShared: () => boolean
  readonly nowMs: () => number
}

const appsOf = ({ capabilities }: Caller): unknown =>
  (capabilities['extensions'] as Readonly<Record<string, unknown>>)[UI_EXTENSION]

/** What the gateway can carry back to this caller's host, and may therefore declare (B037). */
export const carried = (caller: Caller): Declared => {
  const { elicitation, sampling, roots } = caller.capabilities
  return {
    ...(elicitation !== undefined && { elicitation }),
    ...(sampling !== undefined && { sampling }),
    ...(roots !== undefined && { roots }),
    // Legacy eras know no such member; hosts that run apps put it there all the same (B044).
    ...(declaresApps(caller.capabilities) && { extensions: { [UI_EXTENSION]: appsOf(caller) } }),
  }
}

export class Links implements Sweepable {
  #options: ServerOptions
  readonly #environment: LinksEnvironment
  readonly #held = new Map<string, Held>()
  /** The same links by session, where each has its own: a call then makes no key. */
  readonly #bySession = new WeakMap<HostSession, Held>()
  readonly #tasks: HeldTasks<Held>
  #calls = 0

  constructor(options: ServerOptions, environment: LinksEnvironment) {
    this.#options = options
    this.#environment = environment
    this.#tasks = new HeldTasks(environment.nowMs)
  }

  /** Other options, none of which asks for a restart: links that are open stay. */
  adopt(options: ServerOptions): void {
    this.#options = options
  }

  get size(): number {
    return this.#held.size
  }

  /** The open links, for `ps`. */
  list(): Link[] {
    return [...this.#held.values()].flatMap((held) => (held.opened === undefined ? [] : [held.opened]))
  }

  /** The link of one legacy session, if it has one open. */
  ofSession(session: HostSession): Link | undefined {
    for (const held of this.#held.values()) if (held.owner.caller.session === session) return held.opened
    return undefined
  }

  /** Runs `use` on the caller's link, or on the one that holds the task he asks for; the link is not closed meanwhile. */
  async lease(call: Call, use: (link: Link) => Promise<Outcome>): Promise<Outcome> {
    const held = this.#tasks.holderFor(call) ?? this.#hold(call.caller)
    held.leases++
    try {
      const outcome = await use(held.opened ?? (await awaited(held, call)))
      this.#tasks.heed(call, outcome, held)
      return outcome
    } catch (error) {
      // The server forgot the session of this link: whoever comes next gets another; what is under way may still be answered.
      // Or it goes on with a call that was given up, and what it asks then must not meet the next caller (B048).
      const isTainted = isForgotten(error) || (error instanceof Failure && this.#isExclusive(held.owner))
      if (isTainted && this.#held.get(held.owner.key) === held) this.#held.delete(held.owner.key)
      throw error
    } finally {
      held.leases--
      held.idleSinceMs = this.#environment.nowMs()
      const isDropped = held.leases === 0 && this.#held.get(held.owner.key) !== held
      const isOver = this.#options.sharing === 'call' || held.isLeft || isDropped
      if (isOver && !this.#tasks.needs(held)) await this.#close(held)
    }
  }

  /** A server says that a task has ended. */
  taskEnded(id: string): void {
    this.#tasks.ended(id)
  }

  /** Closes what has been idle too long; called by the owner's clock. */
  sweep(): void {
    const nowMs = this.#environment.nowMs()
    for (const held of this.#held.values()) {
      if (held.leases > 0 || this.#tasks.needs(held)) continue
      const isIdle = held.owner.caller.session === undefined && nowMs - held.idleSinceMs >= this.#options.idleStopMs
      if (isIdle || held.isLeft) void this.#close(held)
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#held.values()].map((held) => this.#close(held)))
  }

  /** Isolation by the server's `sharing`; capabilities are part of the key because they are fixed on a legacy link. */
  #owner(caller: Caller): LinkOwner {
    const { sharing } = this.#options
    const { principal, session } = caller
    const declared = sharing === 'shared' ? {} : carried(caller)
    const isolation =
      sharing === 'shared'
        ? 'shared'
        : sharing === 'call'
          ? `call:${++this.#calls}`
          : sharing === 'session' && session !== undefined
            ? `session:${session.id}`
            : `principal:${principal}`
    return { key: `${isolation} ${JSON.stringify(declared)}`, principal, declared, caller, waiting: new Set() }
  }

  /** Modern hosts that can be asked have a link to themselves while they use it. */
  #isExclusive({ caller, declared }: LinkOwner): boolean {
    return caller.session === undefined && Object.keys(declared).length > 0 && this.#environment.isShared()
  }

  /** The caller's link: of an exclusive key the first that is free. */
  #hold(caller: Caller): Held {
    const { session } = caller
    const own = this.#options.sharing === 'session' && session !== undefined ? this.#bySession.get(session) : undefined
    if (own !== undefined && this.#held.get(own.owner.key) === own) return own
    const owner = this.#owner(caller)
    const isExclusive = this.#isExclusive(owner)
    for (let at = 0; ; at++) {
      const key = at === 0 ? owner.key : `${owner.key} ${at}`
      const existing = this.#held.get(key)
      if (existing === undefined) return this.#open({ ...owner, key })
      if (!isExclusive || existing.leases === 0) return existing
    }
  }

  #open(owner: LinkOwner): Held {
    const { maxLinks } = this.#options.limits
    const isOfPrincipal = (held: Held): boolean =>
      held.owner.principal === owner.principal && held.owner.caller.session === undefined
    // Links of sessions are bounded by the limit of sessions, not by this one.
    if (owner.caller.session === undefined && [...this.#held.values()].filter(isOfPrincipal).length >= maxLinks)
      throw new Failure('overloaded', `limits.links (${maxLinks}) reached`, { executed: 'no', retryable: true })
    const held: Held = {
      owner,
      link: this.#environment.open(owner),
      opened: undefined,
      isLeft: false,
      leases: 0,
      idleSinceMs: this.#environment.nowMs(),
    }
    this.#held.set(owner.key, held)
    if (this.#options.sharing === 'session' && owner.caller.session !== undefined) this.#bySession.set(owner.caller.session, held)
    const forget = (): void => {
      if (this.#held.get(owner.key) === held) this.#held.delete(owner.key)
      this.#tasks.forget(held)
    }
    held.link.then((link) => {
      held.opened = link
      void link.closed.then(forget)
    }, forget)
    owner.caller.session?.onEnd(() => {
      held.isLeft = true
      if (!this.#tasks.needs(held)) void this.#close(held)
    })
    return held
  }

  async #close(held: Held): Promise<void> {
    if (this.#held.get(held.owner.key) === held) this.#held.delete(held.owner.key)
    const link = await held.link.catch(() => undefined)
    await link?.close()
  }
}

const awaited = async ({ owner, link }: Held, call: Call): Promise<Link> => {
  owner.waiting.add(call)
  try {
    return await link
  } finally {
    owner.waiting.delete(call)
  }
}

/**
 * Which link holds which task of a legacy server. All requests about the task go over that link. The link outlives its session
 * until its tasks have ended or expired (BRIDGING 3.17). Servers choose ids per process, so two links may hold tasks of one id:
 * a caller gets a task of its own principal only, first of all one on its own link.
 */
import { ServerError } from '../../rpc/call.ts'
import type { Call, Outcome } from '../../rpc/call.ts'
import { METHODS } from '../../wire/protocol/methods.ts'
import { Payload } from '../../wire/message/payload.ts'
import { isTerminal } from '../../wire/protocol/extensions.ts'
import type { LinkOwner } from '../link-owner.ts'

/** Unlimited tasks hold a link this long. */
const MAX_HELD_MS = 24 * 3_600_000

interface LinkTask {
  readonly untilMs: number
  hasEnded: boolean
}

export class LinkTaskTable {
  readonly #nowMs: () => number
  /** By id, then by the owner of the link. */
  readonly #tasks = new Map<string, Map<LinkOwner, LinkTask>>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Who holds the task that the call asks for. */
  holderFor({ method, target, caller }: Call): LinkOwner | undefined {
    if (METHODS[method]?.handling !== 'task') return undefined
    const holders = [...(this.#tasks.get(target ?? '')?.keys() ?? [])].filter(
      ({ isolation, principal }) => isolation === 'shared' || principal === caller.principal,
    )
    return holders.find(({ sessions }) => caller.session !== undefined && sessions.has(caller.session)) ?? holders.at(-1)
  }

  /** Tracks tasks by outcomes: created, ended. */
  track({ method, target }: Call, { kind, result }: Outcome, owner: LinkOwner): void {
    if (kind === 'task') this.#add(result.text('taskId') ?? '', result.value('ttlMs'), owner)
    else if (method === 'tasks/result' || method === 'tasks/cancel') this.ended(target ?? '', owner)
    else if (method === 'tasks/get' && result instanceof Payload && isTerminal(result.text('status')))
      this.ended(target ?? '', owner)
  }

  /** Tracks tasks by errors: an error may be the result of a task, and an unknown task has ended. */
  trackError({ method, target }: Call, error: unknown, owner: LinkOwner): void {
    const isUnknown = error instanceof ServerError && error.code === -32602
    if ((method === 'tasks/get' && isUnknown) || (method === 'tasks/result' && error instanceof ServerError))
      this.ended(target ?? '', owner)
  }

  /** `owner`: of the link that reported the end; `undefined`: a link of no caller. */
  ended(id: string, owner: LinkOwner | undefined): void {
    for (const [holder, task] of this.#tasks.get(id) ?? []) if (owner === undefined || owner === holder) task.hasEnded = true
  }

  /** Whether a task on this link still runs. */
  needs(owner: LinkOwner): boolean {
    for (const holders of this.#tasks.values()) if (holders.get(owner)?.hasEnded === false) return true
    return false
  }

  /** The link is closed. */
  forget(owner: LinkOwner): void {
    this.#forgetWhere((holder) => holder === owner)
  }

  forgetExpired(): void {
    const nowMs = this.#nowMs()
    this.#forgetWhere((_, { untilMs }) => untilMs < nowMs)
  }

  #forgetWhere(isOver: (owner: LinkOwner, task: LinkTask) => boolean): void {
    for (const [id, holders] of this.#tasks) {
      for (const [owner, task] of holders) if (isOver(owner, task)) holders.delete(owner)
      if (holders.size === 0) this.#tasks.delete(id)
    }
  }

  #add(id: string, ttlMs: unknown, owner: LinkOwner): void {
    const heldMs = typeof ttlMs === 'number' ? Math.min(ttlMs, MAX_HELD_MS) : MAX_HELD_MS
    const holders = this.#tasks.get(id) ?? new Map<LinkOwner, LinkTask>()
    holders.delete(owner)
    this.#tasks.set(id, holders.set(owner, { untilMs: this.#nowMs() + heldMs, hasEnded: false }))
  }
}

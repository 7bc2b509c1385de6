/**
 * Maps tasks of a legacy server to their links. All requests about a task use its link. The link outlives its session until its tasks have
 * ended or expired (BRIDGING 3.17). Servers choose ids per process, so two links may have tasks with the same id. A caller gets only tasks
 * of its principal; a task on its own link comes first.
 */
import { storedMs } from '../../era/task-shapes.ts'
import { ServerError } from '../../rpc/call.ts'
import type { Call, Outcome } from '../../rpc/call.ts'
import { METHODS } from '../../wire/protocol/methods.ts'
import { Payload } from '../../wire/message/payload.ts'
import { isTerminal } from '../../wire/protocol/extensions.ts'
import type { LinkOwner } from '../link-owner.ts'

interface LinkTask {
  /** When the task expires. */
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

  /** The owner of the link with the task that the call is about. */
  ownerFor({ method, target, caller }: Call): LinkOwner | undefined {
    if (METHODS[method]?.handling !== 'task') return undefined
    const holders = [...(this.#tasks.get(target ?? '')?.keys() ?? [])].filter(
      ({ isolation, principal }) => isolation === 'shared' || principal === caller.principal,
    )
    return holders.find(({ sessions }) => caller.session !== undefined && sessions.has(caller.session)) ?? holders.at(-1)
  }

  /** Adds a task that the outcome created; marks a task as ended if the outcome shows its end. */
  track({ method, target }: Call, { kind, result }: Outcome, owner: LinkOwner): void {
    if (kind === 'task') this.#add(result.text('taskId') ?? '', result.value('ttlMs'), owner)
    else if (method === 'tasks/result' || method === 'tasks/cancel') this.ended(target ?? '', owner)
    else if (method === 'tasks/get' && result instanceof Payload && isTerminal(result.text('status')))
      this.ended(target ?? '', owner)
  }

  /** Marks a task as ended if the error is its result, or if the server does not know the task. */
  trackError({ method, target }: Call, error: unknown, owner: LinkOwner): void {
    const isUnknown = error instanceof ServerError && error.code === -32602
    if ((method === 'tasks/get' && isUnknown) || (method === 'tasks/result' && error instanceof ServerError))
      this.ended(target ?? '', owner)
  }

  /** Marks a task as ended; `owner`: of the link that reported it; `undefined`: the main link. */
  ended(id: string, owner: LinkOwner | undefined): void {
    for (const [holder, task] of this.#tasks.get(id) ?? []) if (owner === undefined || owner === holder) task.hasEnded = true
  }

  /** Whether a task on this link is still running. */
  needs(owner: LinkOwner): boolean {
    for (const holders of this.#tasks.values()) if (holders.get(owner)?.hasEnded === false) return true
    return false
  }

  /** Removes the tasks of a closed link. */
  removeOf(owner: LinkOwner): void {
    this.#removeWhere((holder) => holder === owner)
  }

  removeExpired(): void {
    const nowMs = this.#nowMs()
    this.#removeWhere((_, { untilMs }) => untilMs < nowMs)
  }

  #removeWhere(isOver: (owner: LinkOwner, task: LinkTask) => boolean): void {
    for (const [id, holders] of this.#tasks) {
      for (const [owner, task] of holders) if (isOver(owner, task)) holders.delete(owner)
      if (holders.size === 0) this.#tasks.delete(id)
    }
  }

  #add(id: string, ttlMs: unknown, owner: LinkOwner): void {
    const holders = this.#tasks.get(id) ?? new Map<LinkOwner, LinkTask>()
    holders.delete(owner)
    this.#tasks.set(id, holders.set(owner, { untilMs: this.#nowMs() + storedMs(ttlMs), hasEnded: false }))
  }
}

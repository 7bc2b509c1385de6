/**
 * Which link holds which task of a legacy server: requests about it go there, whoever sends them, and the link outlives its
 * session until its tasks have ended or their time is over (BRIDGING 3.17).
 */
import type { Call, Outcome } from '../rpc/call.ts'
import { Payload } from '../wire/payload.ts'
import { METHODS } from '../wire/methods.ts'
import { isTerminal } from '../wire/tasks.ts'

/** Unlimited tasks hold a link this long. */
const MAX_HELD_MS = 24 * 3_600_000

export class HeldTasks<Holder> {
  readonly #nowMs: () => number
  readonly #tasks = new Map<string, { readonly holder: Holder; readonly untilMs: number; hasEnded: boolean }>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Who holds the task that the call asks for. */
  holderFor({ method, target }: Call): Holder | undefined {
    return METHODS[method]?.way === 'task' ? this.#tasks.get(target ?? '')?.holder : undefined
  }

  /** Takes up what an outcome says of tasks: made, ended. */
  heed({ method, target }: Call, { kind, result }: Outcome, holder: Holder): void {
    if (kind === 'task') this.#add(result.text('taskId') ?? '', result.value('ttlMs'), holder)
    else if (method === 'tasks/result' || method === 'tasks/cancel') this.ended(target ?? '')
    else if (method === 'tasks/get' && result instanceof Payload && isTerminal(result.text('status'))) this.ended(target ?? '')
  }

  ended(id: string): void {
    const task = this.#tasks.get(id)
    if (task !== undefined) task.hasEnded = true
  }

  /** Whether a task of this holder still runs. */
  needs(holder: Holder): boolean {
    const nowMs = this.#nowMs()
    for (const [id, task] of this.#tasks) {
      if (task.untilMs < nowMs) this.#tasks.delete(id)
      else if (task.holder === holder && !task.hasEnded) return true
    }
    return false
  }

  forget(holder: Holder): void {
    for (const [id, task] of this.#tasks) if (task.holder === holder) this.#tasks.delete(id)
  }

  #add(id: string, ttlMs: unknown, holder: Holder): void {
    const heldMs = typeof ttlMs === 'number' ? Math.min(ttlMs, MAX_HELD_MS) : MAX_HELD_MS
    this.#tasks.set(id, { holder, untilMs: this.#nowMs() + heldMs, hasEnded: false })
  }
}

/** Progress must increase ([2026-07-28 basic/patterns/progress]); what does not is dropped (B136). */
import type { Payload } from '../wire/payload.ts'

export class ProgressGate {
  #last = -Infinity

  passes(params: Payload): boolean {
    const progress = Number(params.raw('progress')?.toString())
    if (!(progress > this.#last)) return false
    this.#last = progress
    return true
  }
}

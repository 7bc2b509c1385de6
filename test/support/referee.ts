/**
 * Sees every call leave a host and every call arrive at a server, and says what became of each: the invariant of RELIABILITY 4.
 * Calls are told apart by a number in their arguments, never by their ids, so that all hosts may use the id 1.
 *
 * The surprise: a call is remembered in one byte for ever, so that an execution that comes a minute late is still seen as the
 * second one; ten million calls take ten megabytes.
 */

/** How a host saw a call end. */
export type End =
  /** A server's answer; `nonce`: the number that it carries. */
  | { readonly type: 'answered'; readonly nonce: number | undefined }
  /** An error that the gateway made. */
  | { readonly type: 'failed'; readonly kind: string; readonly executed: 'no' | 'unknown' }
  /** The stream or connection was closed without an answer. */
  | { readonly type: 'broken' }

export interface Verdict {
  readonly calls: number
  readonly answered: number
  /** By `kind`, or by how the stream broke. */
  readonly failed: Readonly<Record<string, number>>
  readonly broken: number
  /** Neither answered nor closed. */
  readonly lost: number
  /** Answered with what belongs to another call, or by no server at all. */
  readonly crossed: number
  /** Executed twice, or answered twice. */
  readonly doubled: number
  /** Told `executed: no` although a server has got it. */
  readonly untrue: number
}

const EXECUTED = 1
const ENDED = 2
const DENIED = 4
const CHUNK = 65_536

export class Referee {
  readonly #marks: Uint8Array[] = []
  /** When each call that has not ended was begun, ms. */
  readonly #open = new Map<number, number>()
  readonly #failed = new Map<string, number>()
  readonly #waiting = new Set<() => void>()
  #calls = 0
  #answered = 0
  #broken = 0
  #crossed = 0
  #doubled = 0
  #untrue = 0
  /** The first few violations, in words. */
  readonly findings: string[] = []

  /** A host is about to call; returns the number that the call's arguments must carry as `nonce`. */
  begin(): number {
    const nonce = this.#calls++
    this.#open.set(nonce, performance.now())
    return nonce
  }

  /** A server has received the call. */
  executed(nonce: number): void {
    const mark = this.#mark(nonce)
    if ((mark & EXECUTED) !== 0) this.#doubled += this.#found(`call ${nonce} was executed twice`)
    if ((mark & DENIED) !== 0) this.#untrue += this.#found(`call ${nonce} was executed after "executed: no"`)
    this.#set(nonce, EXECUTED)
  }

  ended(nonce: number, end: End): void {
    const mark = this.#mark(nonce)
    if ((mark & ENDED) !== 0) this.#doubled += this.#found(`call ${nonce} ended twice, the second time ${end.type}`)
    this.#open.delete(nonce)
    this.#set(nonce, ENDED)
    if (end.type === 'broken') this.#broken++
    else if (end.type === 'failed') this.#denied(nonce, mark, end.kind, end.executed)
    else {
      this.#answered++
      if (end.nonce !== nonce) this.#crossed += this.#found(`call ${nonce} was answered with ${end.nonce}`)
      else if ((mark & EXECUTED) === 0) this.#crossed += this.#found(`call ${nonce} was answered, and no server has seen it`)
    }
    if (this.#open.size === 0) for (const wake of this.#waiting) wake()
  }

  get calls(): number {
    return this.#calls
  }
  get open(): number {
    return this.#open.size
  }

  /** Resolves when every call has ended, or after `timeoutMs`: what is open then is lost. */
  async settled(timeoutMs: number): Promise<void> {
    if (this.#open.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, timeoutMs)
    this.#waiting.add(resolve)
    await promise
    this.#waiting.delete(resolve)
    clearTimeout(timer)
    for (const [nonce, sinceMs] of this.#open)
      this.#found(`call ${nonce} is open for ${Math.round(performance.now() - sinceMs)} ms`)
  }

  get verdict(): Verdict {
    return {
      calls: this.#calls,
      answered: this.#answered,
      failed: Object.fromEntries([...this.#failed].sort()),
      broken: this.#broken,
      lost: this.#open.size,
      crossed: this.#crossed,
      doubled: this.#doubled,
      untrue: this.#untrue,
    }
  }

  /** Nothing lost, crossed, doubled or untrue. */
  get isClean(): boolean {
    return this.#open.size + this.#crossed + this.#doubled + this.#untrue === 0
  }

  #denied(nonce: number, mark: number, kind: string, executed: 'no' | 'unknown'): void {
    this.#failed.set(kind, (this.#failed.get(kind) ?? 0) + 1)
    if (executed === 'unknown') return
    if ((mark & EXECUTED) !== 0) this.#untrue += this.#found(`call ${nonce} was executed, and ${kind} says it was not`)
    this.#set(nonce, DENIED)
  }

  /** Always 1. */
  #found(finding: string): number {
    if (this.findings.length < 20) this.findings.push(finding)
    return 1
  }

  #mark(nonce: number): number {
    return this.#marks[Math.floor(nonce / CHUNK)]?.[nonce % CHUNK] ?? 0
  }

  #set(nonce: number, bit: number): void {
    const chunk = (this.#marks[Math.floor(nonce / CHUNK)] ??= new Uint8Array(CHUNK))
    chunk[nonce % CHUNK]! |= bit
  }
}

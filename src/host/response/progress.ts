/**
 * Relays progress to the host of one request: increasing values only ([2026-07-28 basic/patterns/progress]; B136), at a limited rate
 * (BRIDGING 3.9). The latest progress is always sent before the answer.
 */
import type { Flow } from '../../rpc/call.ts'
import type { CancelSignal } from '../../rpc/cancellation.ts'
import type { Id } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import { notificationMessage, resultHead } from '../../wire/message/message.ts'
import type { Parts, Payload } from '../../wire/message/payload.ts'
import type { StreamedResult } from '../../wire/result/streamed-result.ts'
import type { Exchange } from './exchange.ts'

const NOT_PASSED = 'the result is too long for a pipe: a call that begins over HTTP must be continued there'
const METHOD = 'notifications/progress'
/** Notifications sent at once; then ten a second. */
const BURST = 20
const PERIOD_MS = 100

export class ProgressExchange implements Exchange {
  /** Id of the host's request. */
  readonly hostId: Id | undefined
  traceId: string | undefined
  readonly #inner: Exchange
  readonly #token: Id | undefined
  #last = -Infinity
  #allowance = BURST
  #countedMs = 0
  #held: Payload | undefined
  #timer: NodeJS.Timeout | undefined

  /** `token`: the host's progress token as JSON; `undefined`: nothing is relayed. */
  constructor(inner: Exchange, token: Id | undefined, hostId: Id | undefined) {
    this.hostId = hostId
    this.#inner = inner
    this.#token = token
  }

  /** Relays progress of a server, whose own token is replaced. */
  progress(params: Payload): void {
    if (!this.#increases(params)) return
    this.#held = params
    if (this.#timer === undefined) this.#sendOrWait()
  }

  /** Relays progress of a task after the answer was sent, to `outlet`. Over the rate it is dropped: none may follow the end of its task. */
  late(params: Payload, outlet: { send(parts: Parts): void } | undefined): void {
    if (this.#token === undefined || !this.#increases(params) || !this.#isWithinRate()) return
    params.set('progressToken', this.#token)
    outlet?.send(notificationMessage(METHOD, params.parts()))
  }

  message(parts: Parts, key?: string): void {
    this.#inner.message(parts, key)
  }

  answer(parts: Parts, status: number, scopes?: readonly string[]): void {
    clearTimeout(this.#timer)
    this.#send()
    this.#inner.answer(parts, status, scopes)
  }

  get flow(): Flow | undefined {
    return this.#inner.flow
  }

  get transport(): 'pipe' | 'tcp' {
    return this.#inner.transport ?? 'pipe'
  }

  get ambient(): string | undefined {
    return this.#inner.ambient
  }

  get isGone(): boolean {
    return this.#inner.isGone === true
  }

  onTaken(callback: () => void): void {
    this.#inner.onTaken?.(callback)
  }

  freeRequest(): void {
    this.#inner.freeRequest?.()
  }

  get takesStreams(): boolean {
    return this.#inner.pass !== undefined
  }

  /** Sends a streamed result as the answer to the request `id`. `onBroken`: the result broke off. */
  stream(result: StreamedResult, id: Id, signal: CancelSignal, onBroken: (error: unknown) => void): void {
    if (signal.aborted) return result.abort()
    clearTimeout(this.#timer)
    this.#send()
    if (this.#inner.pass !== undefined) return this.#inner.pass(resultHead(id), result, onBroken)
    // The call began over HTTP, and its retry came over a pipe.
    result.abort()
    onBroken(new Failure('lost', NOT_PASSED, { told: NOT_PASSED, executed: 'unknown' }))
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#held = undefined
    this.#inner.end()
  }

  /** Whether the request has a progress token and the value is greater than the last one, which it replaces. */
  #increases(params: Payload): boolean {
    const progress = Number(params.raw('progress')?.toString())
    if (this.#token === undefined || !(progress > this.#last)) return false
    this.#last = progress
    return true
  }

  #sendOrWait(): void {
    if (this.#isWithinRate()) return this.#send()
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#held !== undefined) this.#sendOrWait()
    }, PERIOD_MS)
  }

  /** Whether one more notification may be sent now. */
  #isWithinRate(): boolean {
    const nowMs = performance.now()
    this.#allowance = Math.min(BURST, this.#allowance + (nowMs - this.#countedMs) / PERIOD_MS)
    this.#countedMs = nowMs
    if (this.#allowance < 1) return false
    this.#allowance--
    return true
  }

  #send(): void {
    const held = this.#held
    this.#held = undefined
    if (held === undefined || this.#token === undefined) return
    held.set('progressToken', this.#token)
    this.#inner.message(notificationMessage(METHOD, held.parts()), this.#token)
  }
}

/**
 * Relays progress to the host of one request: increasing values only ([2026-07-28 basic/patterns/progress]; B136), at a limited rate
 * (BRIDGING 3.9). The latest held progress is always sent before the answer.
 */
import type { Flow } from '../../rpc/call.ts'
import type { Id } from '../../wire/message/envelope.ts'
import type { Failure } from '../../wire/message/failure.ts'
import { notificationMessage } from '../../wire/message/message.ts'
import type { Parts, Payload } from '../../wire/message/payload.ts'
import type { StreamedResult } from '../../wire/result/streamed-result.ts'
import type { Exchange } from './exchange.ts'

const METHOD = 'notifications/progress'
/** So many at once, then ten a second. */
const BURST = 20
const PERIOD_MS = 100

export class ProgressExchange implements Exchange {
  /** See `ResponseChannel`. */
  readonly hostId: Id | undefined
  traceId: string | undefined
  readonly #inner: Exchange
  readonly #token: Id | undefined
  #last = -Infinity
  #allowance = BURST
  #countedMs = 0
  #held: Payload | undefined
  #timer: NodeJS.Timeout | undefined

  /** `token`: the host's, as JSON; without one nothing is relayed. `hostId`: of the request. */
  constructor(inner: Exchange, token: Id | undefined, hostId: Id | undefined) {
    this.hostId = hostId
    this.#inner = inner
    this.#token = token
  }

  /** Progress as a server reported it, under whatever token. */
  progress(params: Payload): void {
    const progress = Number(params.raw('progress')?.toString())
    if (this.#token === undefined || !(progress > this.#last)) return
    this.#last = progress
    this.#held = params
    if (this.#timer === undefined) this.#sendOrWait()
  }

  /** Progress of a request that goes on as a task: its answer is out, so this goes another way. */
  late(params: Payload, way: { send(parts: Parts): void } | undefined): void {
    const progress = Number(params.raw('progress')?.toString())
    if (this.#token === undefined || !(progress > this.#last)) return
    this.#last = progress
    params.set('progressToken', this.#token)
    way?.send(notificationMessage(METHOD, params.parts()))
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

  pass(head: Buffer, result: StreamedResult, onBroken: (failure: Failure) => void): void {
    clearTimeout(this.#timer)
    this.#send()
    this.#inner.pass?.(head, result, onBroken)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#held = undefined
    this.#inner.end()
  }

  #sendOrWait(): void {
    const nowMs = performance.now()
    this.#allowance = Math.min(BURST, this.#allowance + (nowMs - this.#countedMs) / PERIOD_MS)
    this.#countedMs = nowMs
    if (this.#allowance >= 1) {
      this.#allowance--
      return this.#send()
    }
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#held !== undefined) this.#sendOrWait()
    }, PERIOD_MS)
  }

  #send(): void {
    const held = this.#held
    this.#held = undefined
    if (held === undefined || this.#token === undefined) return
    held.set('progressToken', this.#token)
    this.#inner.message(notificationMessage(METHOD, held.parts()), this.#token)
  }
}

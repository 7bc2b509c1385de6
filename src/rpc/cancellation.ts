/**
 * How a host cancels a call. `CancelSignal` is the part of `AbortSignal` that calls use, and an `AbortSignal` is a valid one.
 * `Cancellation` implements it without an `EventTarget`, which with its listener took 5 % of the CPU of a small call.
 */
import type { Payload } from '../wire/message/payload.ts'
import { pause } from '../time/pause.ts'
import { Failure } from '../wire/message/failure.ts'

/** Called once, on cancellation. An object in place of a function saves a closure per call. */
export type CancelListener = (() => void) | { handleEvent(): void }

export interface CancelSignal {
  readonly aborted: boolean
  /** The params of the host's cancellation notification, if it sent one. They are relayed to the server (B273). */
  readonly notice?: Payload | undefined
  addEventListener(type: 'abort', listener: CancelListener, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: CancelListener): void
}

/** The part of `AbortController` that belongs to `CancelSignal`. */
export interface Cancel {
  readonly signal: CancelSignal
  abort(notice?: Payload): void
}

/** Signal and controller in one object. Calls its listeners once, in the order in which they were added. */
export class Cancellation implements Cancel, CancelSignal {
  /** The first listener, nearly always the only one. */
  #first: CancelListener | undefined
  #others: CancelListener[] | undefined
  #isAborted = false
  #notice: Payload | undefined

  get signal(): CancelSignal {
    return this
  }
  get aborted(): boolean {
    return this.#isAborted
  }
  get notice(): Payload | undefined {
    return this.#notice
  }

  addEventListener(_type: 'abort', listener: CancelListener): void {
    if (this.#first === undefined) this.#first = listener
    else (this.#others ??= []).push(listener)
  }

  removeEventListener(_type: 'abort', listener: CancelListener): void {
    if (this.#first === listener) this.#first = this.#others?.shift()
    else this.#others = this.#others?.filter((other) => other !== listener)
  }

  abort(notice?: Payload): void {
    if (this.#isAborted) return
    this.#isAborted = true
    this.#notice = notice
    const listeners = [this.#first, ...(this.#others ?? [])]
    for (const listener of listeners) {
      if (typeof listener === 'function') listener()
      else listener?.handleEvent()
    }
  }
}

/** Resolves after `ms` milliseconds. Rejects with `Failure('cancelled')` if the host cancels meanwhile. */
export const pauseFor = async (ms: number, signal: CancelSignal): Promise<void> => {
  if (!(await pause(ms, signal))) throw new Failure('cancelled', 'cancelled by the host')
}

/** Settles like `work`, which goes on, or rejects with `Failure('cancelled')` as soon as the host cancels: nothing was sent by then. */
export const unlessCancelled = <T>(work: Promise<T>, signal: CancelSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new Failure('cancelled', 'cancelled before it was sent', { executed: 'no' }))
    const settled = (settle: () => void): void => {
      signal.removeEventListener('abort', onAbort)
      settle()
    }
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    work.then(
      (value) => settled(() => resolve(value)),
      (error: unknown) => settled(() => reject(error)),
    )
  })

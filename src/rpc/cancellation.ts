/**
 * The host's cancellation of a call. `CancelSignal` is the part of `AbortSignal` that calls use, without an `EventTarget`: one of
 * those per call, with a listener, was 5 % of a small call. An `AbortSignal` is a valid `CancelSignal`.
 */
import type { Payload } from '../wire/message/payload.ts'

/** Called on cancellation, at most once. An object saves a closure per call. */
export type CancelListener = (() => void) | { handleEvent(): void }

export interface CancelSignal {
  readonly aborted: boolean
  /** The params of the host's own notification, where it sent one; they are relayed to the server (B273). */
  readonly notice?: Payload | undefined
  addEventListener(type: 'abort', listener: CancelListener, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: CancelListener): void
}

/** The matching part of `AbortController`. */
export interface Cancel {
  readonly signal: CancelSignal
  abort(notice?: Payload): void
}

/** Signal and controller in one; listeners are called once, in order. */
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

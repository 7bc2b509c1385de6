/**
 * When lists are read again: after the server announced a change (bursts count once: 100 ms of quiet, at most 1 s), and from
 * time to time where it cannot announce any, with jitter and back-off (BRIDGING 3.7; B129, B157).
 */
import { Subject, debounce, timer } from 'rxjs'

const QUIET_MS = 100
const MAX_DELAY_MS = 1_000
const MAX_POLL_MS = 600_000

export class Rereads {
  readonly #read: () => Promise<void>
  readonly #signals$ = new Subject<void>()
  #firstSignalMs: number | undefined
  #reading: Promise<void> | undefined
  #again = false
  #poll: NodeJS.Timeout | undefined

  constructor(read: () => Promise<void>) {
    this.#read = read
    this.#signals$.pipe(debounce(() => timer(this.#quietMs()))).subscribe(() => {
      this.#firstSignalMs = undefined
      void this.#readOnce()
    })
  }

  request(): void {
    this.#firstSignalMs ??= performance.now()
    this.#signals$.next()
  }

  /** Reads every `periodMs` or so from now on; `undefined`: never. */
  poll(periodMs: number | undefined): void {
    clearTimeout(this.#poll)
    if (periodMs === undefined) return
    const jitteredMs = periodMs * (0.75 + Math.random() / 2)
    this.#poll = setTimeout(() => {
      void this.#readOnce().then((succeeded) => this.poll(succeeded ? periodMs : Math.min(periodMs * 2, MAX_POLL_MS)))
    }, jitteredMs)
    this.#poll.unref()
  }

  #quietMs(): number {
    const waitedMs = performance.now() - (this.#firstSignalMs ?? performance.now())
    return Math.max(0, Math.min(QUIET_MS, MAX_DELAY_MS - waitedMs))
  }

  /** One reading at a time; a request that comes meanwhile causes one more. */
  async #readOnce(): Promise<boolean> {
    if (this.#reading !== undefined) {
      this.#again = true
      return true
    }
    let succeeded = true
    do {
      this.#again = false
      this.#reading = this.#read()
      succeeded = await this.#reading.then(
        () => true,
        () => false,
      )
      this.#reading = undefined
    } while (this.#again)
    return succeeded
  }
}

/** A delay that an abort signal ends early. */

/** The part of `AbortSignal` that `pause` uses; `CancelSignal` of `rpc/` has it, too. */
interface PauseSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** The longest delay of a Node timer; Node fires a longer one at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Resolves with true after `ms` milliseconds, or with false once the signal is aborted. Removes its timer and its listener. */
export const pause = (ms: number, signal: PauseSignal): Promise<boolean> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve(false)
    const onAbort = (): void => {
      clearTimeout(timer)
      resolve(false)
    }
    const timer = setTimeout(
      () => {
        signal.removeEventListener('abort', onAbort)
        resolve(true)
      },
      Math.min(ms, LONGEST_TIMER_MS),
    )
    signal.addEventListener('abort', onAbort, { once: true })
  })

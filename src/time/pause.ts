/** A pause that an abort signal ends. */

/** What a pause needs of an `AbortSignal`. */
interface PauseSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** The longest delay of a Node timer; a longer one would fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Resolves with true after `ms` milliseconds, with false as soon as the signal is aborted. Leaves no timer and no listener behind. */
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

/** Waits with a time limit. */

/** Settles like `work`, or resolves with `undefined` after `ms` milliseconds. Leaves no timer behind. */
export const within = <T>(ms: number, work: Promise<T>): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)))
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** Resolves once `isOver` returns true, which is asked every `everyMs` milliseconds, at the latest after `ms`. */
export const until = async (isOver: () => boolean, ms: number, everyMs: number): Promise<void> => {
  const endMs = performance.now() + ms
  while (!isOver() && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, everyMs))
}

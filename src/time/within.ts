/** A wait with a time limit. */

/** Settles like `work`, or resolves with `undefined` after `ms` milliseconds. Leaves no timer behind. */
export const within = <T>(ms: number, work: Promise<T>): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)))
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

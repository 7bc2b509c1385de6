/** The result of `work`; `undefined`: it threw. For failures that mean "there is none", whatever the error says. */
export const attempt = <T>(work: () => T): T | undefined => {
  try {
    return work()
  } catch {
    return undefined
  }
}

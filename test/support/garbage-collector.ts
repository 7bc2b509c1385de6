/** The garbage collector of this process, for tests of what may be kept in memory. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Collects all that nothing refers to any more. Await a turn of the event loop before: jobs that are due keep what they use. */
export const collector = (): (() => void) => {
  // It is hidden unless a flag asks for it.
  setFlagsFromString('--expose-gc')
  // Cast: what the flag adds to a new context.
  return runInNewContext('gc') as () => void
}

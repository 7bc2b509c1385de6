/** What the operating system says of processes, for tests. */
import { readdirSync, readFileSync } from 'node:fs'

/** Whether the process runs; one that is dead and only not yet reaped does not. Its files are closed then. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const state = stateOf(pid)
  if (state === undefined) return process.platform !== 'linux'
  // Its first thread may be dead while others, which end, still hold its files.
  return !/[ZX]/.test(state) || threadsOf(pid) > 1
}

/** Whether the process was stopped by a signal (Linux). */
export const isStopped = (pid: number): boolean => stateOf(pid) === 'T'

/** The letter that Linux gives the state of a process; `undefined`: there is none, or this is not Linux. */
const stateOf = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.charAt(stat.lastIndexOf(')') + 2)
  } catch {
    return undefined
  }
}

const threadsOf = (pid: number): number => {
  try {
    return readdirSync(`/proc/${pid}/task`).length
  } catch {
    return 0
  }
}

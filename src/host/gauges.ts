/** What of the machine we have used up, as parts of what we may. */
import { readFileSync, readdirSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'

export interface Gauges {
  /** Open file descriptors; 0 where the system does not tell. */
  descriptors(): number
  heap(): number
  /** How many file descriptors there may be; `undefined` where the system does not tell. */
  readonly maxDescriptors: number | undefined
}

export const openGauges = (): Gauges => {
  const maxDescriptors = readMaxDescriptors()
  return {
    maxDescriptors,
    descriptors: () => (maxDescriptors === undefined ? 0 : readdirSync('/proc/self/fd').length / maxDescriptors),
    heap: () => {
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
      return used / limit
    },
  }
}

/** The soft limit, which Node has raised to the hard one. Linux only. */
const readMaxDescriptors = (): number | undefined => {
  try {
    const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))
    return found === null ? undefined : Number(found[1])
  } catch {
    return undefined
  }
}

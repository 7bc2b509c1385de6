/** What of the machine we have used up, as parts of what we may. */
import { readFileSync, readdirSync } from 'node:fs'
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8'

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
      const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => !name.startsWith('new_'))
      return spaces.reduce((used, { space_used_size: size }) => used + size, 0) / maxOldBytes()
    },
  }
}

const MIB = 1024 * 1024
/** What the heap's limit holds ready for new objects: three semi-spaces, which are larger since V8 13. */
const YOUNG_BYTES = Number.parseInt(process.versions.v8, 10) >= 13 ? 192 * MIB : 48 * MIB

/** What may live on. The process ends when this is used up, however far it is from the limit of the whole heap. */
const maxOldBytes = (): number => {
  const { heap_size_limit: limit } = getHeapStatistics()
  return Math.max(limit / 4, limit - YOUNG_BYTES)
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

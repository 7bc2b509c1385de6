/** Shares of the process's file descriptors and heap that are in use. */
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8'
import { asError } from '../../values/as-error.ts'
import { memberOf } from '../../values/json-object.ts'

export interface Gauges {
  /** Share of the file descriptors in use, 0 to 1; 0: not known. Never throws. */
  descriptors(): number
  /** Share of the heap for long-lived objects in use, 0 to 1. */
  heap(): number
  /** File descriptor limit; `undefined`: not known. */
  readonly maxDescriptors: number | undefined
}

export const openGauges = (): Gauges => {
  const maxDescriptors = readMaxDescriptors()
  const maxHeapBytes = maxOldBytes()
  return {
    maxDescriptors,
    descriptors: () => (maxDescriptors === undefined ? 0 : countDescriptors(maxDescriptors) / maxDescriptors),
    heap: () => {
      const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => !name.startsWith('new_'))
      return spaces.reduce((used, { space_used_size: size }) => used + size, 0) / maxHeapBytes
    },
  }
}

const MAX_RESERVE = 1_024
const MIN_RESERVE = 64

/**
 * Returns how many connections of hosts a descriptor limit allows. Reserves a quarter (64 to 1,024, at most three quarters) for the
 * connections and processes of servers, for files and the runtime (F-29).
 */
export const connectionsWithin = (maxDescriptors: number | undefined): number => {
  if (maxDescriptors === undefined) return Infinity
  const reserve = Math.min(Math.max(MIN_RESERVE, maxDescriptors / 4), MAX_RESERVE, maxDescriptors * 0.75)
  return Math.max(1, Math.floor(maxDescriptors - reserve))
}

const DESCRIPTOR_FOLDERS = ['/proc/self/fd', '/dev/fd']

/** Returns `max` if counting fails for lack of a descriptor, and 0 where the system offers no count. */
const countDescriptors = (max: number): number => {
  for (const folder of DESCRIPTOR_FOLDERS)
    try {
      // Since Linux 6.2 the size of this folder is the count, which needs no descriptor.
      const { size } = statSync(folder)
      return folder === '/proc/self/fd' && size > 0 ? size : readdirSync(folder).length
    } catch (error) {
      const { code } = asError(error)
      if (code === 'EMFILE' || code === 'ENFILE') return max
    }
  return 0
}

const MIB = 1024 * 1024
/** Part of the heap limit for new objects: three semi-spaces, which are larger since V8 13. */
const YOUNG_BYTES = Number.parseInt(process.versions.v8, 10) >= 13 ? 192 * MIB : 48 * MIB

/** Returns the limit for long-lived objects. The process aborts at this limit, even if the whole heap is below its limit. */
const maxOldBytes = (): number => {
  const { heap_size_limit: limit } = getHeapStatistics()
  return Math.max(limit / 4, limit - YOUNG_BYTES)
}

/** Reads the soft limit, which Node has raised to the hard limit. */
const readMaxDescriptors = (): number | undefined => {
  try {
    const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))
    return found === null ? undefined : Number(found[1])
  } catch {
    return reportedMaxDescriptors()
  }
}

/** Reads the limit without /proc, as on macOS. Takes a few milliseconds, once. */
const reportedMaxDescriptors = (): number | undefined => {
  const report: NodeJS.ProcessReport & { excludeNetwork?: boolean | undefined } = process.report
  const before = report.excludeNetwork
  report.excludeNetwork = true
  const { userLimits }: { userLimits?: unknown } = report.getReport()
  report.excludeNetwork = before
  const soft = memberOf(memberOf(userLimits, 'open_files'), 'soft')
  return typeof soft === 'number' ? soft : undefined
}

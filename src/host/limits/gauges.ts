/** Which share of the process's own limits is in use: file descriptors and heap. */
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8'
import { asError } from '../../values/as-error.ts'
import { memberOf } from '../../values/json-object.ts'

export interface Gauges {
  /** Share of the file descriptors in use, 0 to 1; 0 where the system does not tell. Never throws. */
  descriptors(): number
  heap(): number
  /** How many file descriptors there may be; `undefined` where the system does not tell. */
  readonly maxDescriptors: number | undefined
}

export const openGauges = (): Gauges => {
  const maxDescriptors = readMaxDescriptors()
  return {
    maxDescriptors,
    descriptors: () => (maxDescriptors === undefined ? 0 : countDescriptors(maxDescriptors) / maxDescriptors),
    heap: () => {
      const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => !name.startsWith('new_'))
      return spaces.reduce((used, { space_used_size: size }) => used + size, 0) / maxOldBytes()
    },
  }
}

const MAX_RESERVE = 1_024
const MIN_RESERVE = 64

/**
 * How many connections of hosts a limit of descriptors leaves room for: the limit less a reserve of a quarter (at least 64, at most
 * 1,024, never more than three quarters) for the connections and processes of servers, files and the runtime (F-29).
 */
export const connectionsWithin = (maxDescriptors: number | undefined): number => {
  if (maxDescriptors === undefined) return Infinity
  const reserve = Math.min(Math.max(MIN_RESERVE, maxDescriptors / 4), MAX_RESERVE, maxDescriptors * 0.75)
  return Math.max(1, Math.floor(maxDescriptors - reserve))
}

const DESCRIPTOR_FOLDERS = ['/proc/self/fd', '/dev/fd']

/** `max` when counting itself fails for want of a descriptor; 0 where the system offers no count. */
const countDescriptors = (max: number): number => {
  for (const folder of DESCRIPTOR_FOLDERS)
    try {
      // Since Linux 6.2 the size of this folder is the count: reading it needs no descriptor.
      const { size } = statSync(folder)
      return folder === '/proc/self/fd' && size > 0 ? size : readdirSync(folder).length
    } catch (error) {
      const { code } = asError(error)
      if (code === 'EMFILE' || code === 'ENFILE') return max
    }
  return 0
}

const MIB = 1024 * 1024
/** What the heap's limit holds ready for new objects: three semi-spaces, which are larger since V8 13. */
const YOUNG_BYTES = Number.parseInt(process.versions.v8, 10) >= 13 ? 192 * MIB : 48 * MIB

/** What may live on. The process ends when this is used up, however far it is from the limit of the whole heap. */
const maxOldBytes = (): number => {
  const { heap_size_limit: limit } = getHeapStatistics()
  return Math.max(limit / 4, limit - YOUNG_BYTES)
}

/** The soft limit, which Node has raised to the hard one. */
const readMaxDescriptors = (): number | undefined => {
  try {
    const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))
    return found === null ? undefined : Number(found[1])
  } catch {
    return reportedMaxDescriptors()
  }
}

/** Where there is no /proc, such as macOS: takes some milliseconds, once. */
const reportedMaxDescriptors = (): number | undefined => {
  const report: NodeJS.ProcessReport & { excludeNetwork?: boolean | undefined } = process.report
  const before = report.excludeNetwork
  report.excludeNetwork = true
  const { userLimits }: { userLimits?: unknown } = report.getReport()
  report.excludeNetwork = before
  const soft = memberOf(memberOf(userLimits, 'open_files'), 'soft')
  return typeof soft === 'number' ? soft : undefined
}

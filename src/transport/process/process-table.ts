/**
 * Reads from the operating system what identifies a process. A pid alone does not identify it, since the system reuses pids. A pid
 * with its start time does, and so does a pipe of the same boot that a process can only have inherited.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { promisify } from 'node:util'
import { asError } from '../../values/as-error.ts'
import { memberOf } from '../../values/json-object.ts'

/** One living process. */
export interface ProcessRow {
  readonly pid: number
  /** Number of its session: the pid of its leader, which may have ended. */
  readonly session: number
  /** In the form of `startTimeOf`. */
  readonly startTime: string
}

const ABSENT: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ESRCH', 'ENOTDIR'])

/**
 * The start time of a process as an opaque text, for comparisons only. `undefined` if it does not run; a zombie does not run. Linux:
 * field 22 of /proc/PID/stat with the boot id; elsewhere the output of `ps`; Windows: always `undefined`. Rejects if the system cannot
 * be queried at present, for example without a free descriptor.
 */
export const startTimeOf = async (pid: number, platform: NodeJS.Platform = process.platform): Promise<string | undefined> => {
  if (platform === 'linux') return rowOf(pid)?.startTime
  if (platform === 'win32') return undefined
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)], { timeout: 5000 })
    const [state = 'Z', ...start] = stdout.trim().split(/\s+/)
    return state.startsWith('Z') || start.length === 0 ? undefined : start.join('_').replaceAll(/\W/g, '_')
  } catch (error) {
    // `ps` exits with code 1 if there is no such process.
    if (memberOf(error, 'code') === 1) return undefined
    throw error
  }
}

/** The boot in a start time of `startTimeOf` (Linux). Numbers of pipes and sessions begin again with each boot. */
export const bootOf = (startTime: string): string => startTime.slice(startTime.indexOf('_') + 1)

/** Linux: all living processes that the gateway may read; elsewhere none. */
export const listProcesses = (platform: NodeJS.Platform = process.platform): readonly ProcessRow[] => {
  if (platform !== 'linux') return []
  const rows: ProcessRow[] = []
  for (const name of readdirSync('/proc')) {
    const row = /^\d+$/.test(name) ? rowOf(Number(name)) : undefined
    if (row !== undefined) rows.push(row)
  }
  return rows
}

/**
 * Linux: the pipes and sockets behind stdin, stdout and stderr of a process, by their inode numbers. Each is created for one child
 * and unique while the system runs, so another process with one of them has inherited it. Elsewhere, and for other users: none.
 */
export const pipesOf = (pid: number): readonly string[] => {
  if (process.platform !== 'linux') return []
  const found: string[] = []
  for (const descriptor of [0, 1, 2])
    try {
      const inode = /^(?:socket|pipe):\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${descriptor}`))?.[1]
      if (inode !== undefined) found.push(inode)
    } catch {
      // The descriptor is closed, the process has ended, or reading is not permitted.
    }
  return found
}

/** The fields of `/proc/PID/stat` behind the command's name, which is in parentheses and may contain spaces and parentheses. */
export const statFields = (stat: string): readonly string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

const rowOf = (pid: number): ProcessRow | undefined => {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch (error) {
    if (ABSENT.has(asError(error).code)) return undefined
    throw error
  }
  const fields = statFields(stat)
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8)
  return { pid, session: Number(fields[3]), startTime: `${fields[19]}_${boot}` }
}

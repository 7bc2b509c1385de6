/**
 * What the operating system says of processes: enough to recognise one again. A pid alone proves nothing, since numbers are used
 * again; a pid with its start time does, and so does a pipe that a process can only have inherited.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { promisify } from 'node:util'
import { asError } from '../../values/as-error.ts'
import { memberOf } from '../../values/json-object.ts'

/** One living process. */
export interface ProcessRow {
  readonly pid: number
  /** Number of its session: the pid that its leader has or had. */
  readonly session: number
  /** As `startTimeOf` says it. */
  readonly startTime: string
}

const ABSENT: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ESRCH', 'ENOTDIR'])

/**
 * When the process was started, as a word that only means something to compare; `undefined` if it does not run (a zombie does
 * not). Linux: field 22 of /proc/PID/stat with the boot it counts from; elsewhere what `ps` says; Windows: never known. Rejects where
 * the system cannot be asked now, as when no descriptor is left.
 */
export const startTimeOf = async (pid: number, platform: NodeJS.Platform = process.platform): Promise<string | undefined> => {
  if (platform === 'linux') return rowOf(pid)?.startTime
  if (platform === 'win32') return undefined
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)], { timeout: 5000 })
    const [state = 'Z', ...start] = stdout.trim().split(/\s+/)
    return state.startsWith('Z') || start.length === 0 ? undefined : start.join('_').replaceAll(/\W/g, '_')
  } catch (error) {
    // `ps` ends with 1 where there is no such process.
    if (memberOf(error, 'code') === 1) return undefined
    throw error
  }
}

/** Linux: all living processes that may be looked at; elsewhere none. */
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
 * Linux: the pipes and sockets behind stdin, stdout and stderr of a process, by their inode numbers. Each is made for one child and
 * unique while the system runs, so that another process with one of them has inherited it. Elsewhere, and of others' processes: none.
 */
export const pipesOf = (pid: number, platform: NodeJS.Platform = process.platform): readonly string[] => {
  if (platform !== 'linux') return []
  const found: string[] = []
  for (const descriptor of [0, 1, 2])
    try {
      const inode = /^(?:socket|pipe):\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${descriptor}`))?.[1]
      if (inode !== undefined) found.push(inode)
    } catch {
      // Closed, gone, or not ours to look at.
    }
  return found
}

const rowOf = (pid: number): ProcessRow | undefined => {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch (error) {
    if (ABSENT.has(asError(error).code)) return undefined
    throw error
  }
  // The command's name, in parentheses, may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8)
  return { pid, session: Number(fields[3]), startTime: `${fields[19]}_${boot}` }
}

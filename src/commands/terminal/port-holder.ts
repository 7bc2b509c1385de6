/** The process that listens on a TCP port of this machine, where the system reports it (Linux, processes of the same user). */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename } from 'node:path'
import { attempt } from '../../values/attempt.ts'

const LISTENS = '0A'

/** `node (pid 4711)`; `undefined`: unknown. Processes may end meanwhile, and some cannot be read. */
export const portHolder = (port: number): string | undefined => {
  const inodes = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => inodesIn(table, port)))
  if (inodes.size === 0) return undefined
  const pid = attempt(() => readdirSync('/proc').filter((name) => /^\d+$/.test(name)))?.find((candidate) =>
    holds(candidate, inodes),
  )
  if (pid === undefined) return undefined
  const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0', 1)[0]) ?? ''
  return `${basename(command) || 'a process'} (pid ${pid})`
}

const inodesIn = (table: string, port: number): readonly string[] => {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = (attempt(() => readFileSync(table, 'latin1')) ?? '').split('\n').map((line) => line.trim().split(/\s+/))
  return rows.flatMap((row) => {
    const [local, state, inode] = [row[1], row[3], row[9]]
    return inode !== undefined && state === LISTENS && local?.endsWith(suffix) === true ? [inode] : []
  })
}

const holds = (pid: string, inodes: ReadonlySet<string>): boolean =>
  (attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? []).some((fd) => {
    const inode = /^socket:\[(\d+)\]$/.exec(attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? '')?.[1]
    return inode !== undefined && inodes.has(inode)
  })

/** Memory of process groups, from `/proc`; empty on systems without it. A shared page is counted once for each process. */
import { readdirSync, readFileSync } from 'node:fs'
import { attempt } from '../../values/attempt.ts'
import { statFields } from './process-table.ts'

/** Resident bytes of the groups with these `leaders`, by the pid of the leader. Without leaders nothing is read. */
export const groupMemory = (leaders: ReadonlySet<number>, folder = '/proc'): ReadonlyMap<number, number> => {
  const groups = new Map<number, number>()
  if (leaders.size === 0) return groups
  for (const pid of pidsIn(folder)) {
    try {
      const group = Number(statFields(readFileSync(`${folder}/${pid}/stat`, 'utf8'))[2])
      if (!leaders.has(group)) continue
      const status = readFileSync(`${folder}/${pid}/status`, 'utf8')
      const kib = Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0)
      groups.set(group, (groups.get(group) ?? 0) + kib * 1024)
    } catch {
      // The process has ended meanwhile.
    }
  }
  return groups
}

const pidsIn = (folder: string): string[] => attempt(() => readdirSync(folder).filter((name) => /^\d+$/.test(name))) ?? []

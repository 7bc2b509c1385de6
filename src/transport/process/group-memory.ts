/** What process groups hold in memory, from `/proc`; nothing where there is none. Pages are counted once for each process that has them. */
import { readdirSync, readFileSync } from 'node:fs'

/** Resident bytes by the pid of the group's leader. */
export const groupMemory = (folder = '/proc'): ReadonlyMap<number, number> => {
  const groups = new Map<number, number>()
  for (const pid of pidsIn(folder)) {
    try {
      const status = readFileSync(`${folder}/${pid}/status`, 'utf8')
      const stat = readFileSync(`${folder}/${pid}/stat`, 'utf8')
      // The name may hold blanks and brackets: what follows it begins after the last one.
      const group = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3)[2])
      const kib = Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0)
      groups.set(group, (groups.get(group) ?? 0) + kib * 1024)
    } catch {
      // It has ended meanwhile.
    }
  }
  return groups
}

const pidsIn = (folder: string): string[] => {
  try {
    return readdirSync(folder).filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}

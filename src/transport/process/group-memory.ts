/** Memory of process groups, from `/proc`; empty on systems without it. A shared page is counted once for each process. */
import { readdirSync, readFileSync } from 'node:fs'

/** Resident bytes by the pid of the group's leader. */
export const groupMemory = (folder = '/proc'): ReadonlyMap<number, number> => {
  const groups = new Map<number, number>()
  for (const pid of pidsIn(folder)) {
    try {
      const status = readFileSync(`${folder}/${pid}/status`, 'utf8')
      const stat = readFileSync(`${folder}/${pid}/stat`, 'utf8')
      // The name may contain spaces and parentheses: the other fields follow the last parenthesis.
      const group = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3)[2])
      const kib = Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0)
      groups.set(group, (groups.get(group) ?? 0) + kib * 1024)
    } catch {
      // The process has ended meanwhile.
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

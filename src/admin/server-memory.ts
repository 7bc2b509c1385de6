/** Memory of the processes of all servers. */
import type { Running } from '../app/running.ts'
import { groupMemory } from '../transport/process/group-memory.ts'

/** Resident bytes by the pid of a process, with those that it has started. */
export const serverMemory = ({ downstreams$ }: Running['fleet']): ReadonlyMap<number, number> => {
  const all = downstreams$.value.flatMap((downstream) => downstream.all)
  return groupMemory(new Set(all.flatMap(({ dialer }) => dialer.processes.map(({ pid }) => pid))))
}

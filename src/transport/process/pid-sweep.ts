/**
 * Ends the orphans of a killed gateway (F-23): its children with their process groups, and the remaining processes of their sessions
 * if the child itself is dead, such as the server behind `sh -c` or npx. A process is killed only if it is proved to be an orphan: by
 * pid and start time, or by a pipe of the same boot that it can only have inherited.
 */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { attempt } from '../../values/attempt.ts'
import { FILE_NAME, readLiving } from './pid-journal.ts'
import type { Recorded } from './pid-journal.ts'
import { bootOf, listProcesses, pipesOf, startTimeOf } from './process-table.ts'

/**
 * Sweeps the journals of dead gateways in the state folder and deletes them; journals of living gateways are not touched. Returns the
 * number of signalled processes. Never rejects because of a missing folder or file.
 */
export const sweep = async (folder: string): Promise<number> => {
  const killed = new Set<number>()
  for (const name of await readdir(folder).catch(() => [])) {
    const [, owner, startTime] = FILE_NAME.exec(name) ?? []
    if (owner === undefined || startTime === undefined || !(await isDead(Number(owner), startTime))) continue
    const path = join(folder, name)
    const recorded = readLiving(await readFile(path, 'utf8').catch(() => ''))
    for (const { pid, startTime: started } of recorded)
      if ((await startTimeOf(pid).catch(() => undefined)) === started && kill(-pid)) killed.add(pid)
    for (const pid of killRemaining(recorded)) killed.add(pid)
    await rm(path, { force: true })
  }
  return killed.size
}

/** False also if the process table cannot be read: a living gateway must not lose its children. */
const isDead = async (pid: number, startTime: string): Promise<boolean> =>
  startTimeOf(pid).then(
    (found) => found !== startTime,
    () => false,
  )

/**
 * Kills members of the children's sessions, and processes that left these sessions. The number of a session is not reused while it has
 * members, so one proved member proves the others.
 */
const killRemaining = (recorded: readonly Recorded[]): readonly number[] => {
  const pipes = new Map(recorded.flatMap(({ pipes: own, startTime }) => own.map((pipe) => [pipe, bootOf(startTime)] as const)))
  if (pipes.size === 0) return []
  const leaders = new Set(recorded.map(({ pid }) => pid))
  const rows = attempt(listProcesses) ?? []
  const proved = rows.filter(({ pid, startTime }) => pipesOf(pid).some((pipe) => pipes.get(pipe) === bootOf(startTime)))
  const sessions = new Set(proved.map(({ session }) => session).filter((session) => leaders.has(session)))
  const remaining = new Set([...proved, ...rows.filter(({ session }) => sessions.has(session))].map(({ pid }) => pid))
  remaining.delete(process.pid)
  return [...remaining].filter((pid) => kill(pid))
}

const kill = (pid: number): boolean => attempt(() => process.kill(pid, 'SIGKILL')) ?? false

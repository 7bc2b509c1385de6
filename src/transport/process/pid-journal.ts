/**
 * Records on disk which processes the gateway started. The next start ends the orphans of a killed gateway (`pid-sweep.ts`, F-23).
 *
 * One file per gateway process, `pids-<pid>-<start time>`, lines `+<pid> <start time> <pipes>` and `-<pid>`, each appended in one
 * write. Pid and start time of the owner and of each child must both match, since the system reuses pids.
 */
import { closeSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../make-folder.ts'
import { startTimeOf } from './process-table.ts'

/** After this number of lines, the file is rewritten with the living children only. */
const COMPACT_LINES = 1000
/** The pid and start time of the owner. */
export const FILE_NAME = /^pids-(\d+)-(\w+)(?:\.new)?$/

/** One child. */
export interface Recorded {
  readonly pid: number
  readonly startTime: string
  /** Inode numbers of its stdin, stdout and stderr; empty where the system does not provide them. */
  readonly pipes: readonly string[]
}

export class PidJournal implements Disposable {
  readonly path: string
  readonly #live = new Map<number, Recorded>()
  /** `undefined`: closed. */
  #file: number | undefined
  #lines = 0

  private constructor(path: string) {
    this.path = path
    this.#file = openSync(path, 'a', 0o600)
  }

  /** Opens the journal of this process in the state folder, which is created if it is missing. Rejects if it cannot be written. */
  static async open(folder: string): Promise<PidJournal> {
    const { pid } = process
    makeFolder(folder)
    return new PidJournal(join(folder, `pids-${pid}-${(await startTimeOf(pid)) ?? '0'}`))
  }

  add(child: Recorded): void {
    this.#live.set(child.pid, child)
    this.#append(lineOf(child))
  }

  remove(pid: number): void {
    if (this.#live.delete(pid)) this.#append(`-${pid}\n`)
  }

  /** Closes the journal, and deletes it if no child is left. */
  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
    if (this.#live.size === 0) rmSync(this.path, { force: true })
  }

  #append(line: string): void {
    // The number of its descriptor may belong to another file now.
    if (this.#file === undefined) return
    try {
      writeSync(this.#file, line)
      if (++this.#lines >= COMPACT_LINES) this.#compact(this.#file)
    } catch {
      // A full disk must not end a server. Only one entry of the journal is lost.
    }
  }

  /** The old file stays open until the new one is complete: the number of a closed descriptor is soon reused for another file. */
  #compact(before: number): void {
    const temporary = `${this.path}.new`
    rmSync(temporary, { force: true })
    const next = openSync(temporary, 'a', 0o600)
    try {
      writeSync(next, [...this.#live.values()].map(lineOf).join(''))
      renameSync(temporary, this.path)
    } catch (error) {
      closeSync(next)
      throw error
    }
    closeSync(before)
    this.#file = next
    this.#lines = 0
  }
}

const lineOf = ({ pid, startTime, pipes }: Recorded): string =>
  `+${pid} ${startTime}${pipes.length === 0 ? '' : ` ${pipes.join(',')}`}\n`

/** The children of a journal that were added and not removed; a line that the crash truncated is ignored. */
export const readLiving = (text: string): readonly Recorded[] => {
  const live = new Map<number, Recorded>()
  for (const [, added, startTime, pipes, removed] of text.matchAll(/^(?:\+(\d+) (\w+)(?: ([\d,]+))?|-(\d+))\n/gm)) {
    if (startTime === undefined) live.delete(Number(removed))
    else live.set(Number(added), { pid: Number(added), startTime, pipes: pipes?.split(',') ?? [] })
  }
  return [...live.values()]
}

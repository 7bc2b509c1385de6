/**
 * Which processes we started, on disk, so that the next start can end what a killed gateway left behind (`pid-sweep.ts`, F-23).
 *
 * One file per gateway process, `pids-<pid>-<start time>`, lines `+<pid> <start time> <pipes>` and `-<pid>`, each appended in one
 * write. Pid and start time must both match, of the owner and of each child, since numbers are used again.
 */
import { closeSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../make-folder.ts'
import { startTimeOf } from './process-table.ts'

/** After so many lines the file is written again with the living only. */
const COMPACT_LINES = 1000
/** Owner's pid and start time. */
export const FILE_NAME = /^pids-(\d+)-(\w+)(?:\.new)?$/

/** One child. */
export interface Recorded {
  readonly pid: number
  readonly startTime: string
  /** Inode numbers of its stdin, stdout and stderr; none where the system does not tell. */
  readonly pipes: readonly string[]
}

export class PidJournal implements Disposable {
  readonly path: string
  readonly #live = new Map<number, Recorded>()
  #file: number
  #lines = 0

  private constructor(path: string) {
    this.path = path
    this.#file = openSync(path, 'a', 0o600)
  }

  /** Opens the journal of this process in the state folder, which is made if it is missing. Rejects if it cannot be written. */
  static async open(folder: string, pid = process.pid): Promise<PidJournal> {
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

  /** Orderly end: with no child left the file goes. */
  [Symbol.dispose](): void {
    closeSync(this.#file)
    if (this.#live.size === 0) rmSync(this.path, { force: true })
  }

  #append(line: string): void {
    try {
      writeSync(this.#file, line)
      if (++this.#lines >= COMPACT_LINES) this.#compact()
    } catch {
      // A full disk must not end a server; what is lost is one entry of a safety net.
    }
  }

  /** The old file stays open until the new one is complete: a closed descriptor's number soon belongs to another file. */
  #compact(): void {
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
    closeSync(this.#file)
    this.#file = next
    this.#lines = 0
  }
}

const lineOf = ({ pid, startTime, pipes }: Recorded): string =>
  `+${pid} ${startTime}${pipes.length === 0 ? '' : ` ${pipes.join(',')}`}\n`

/** The children of a journal that were added and not removed; a line cut short by the crash is no child. */
export const readLiving = (text: string): readonly Recorded[] => {
  const live = new Map<number, Recorded>()
  for (const [, added, startTime, pipes, removed] of text.matchAll(/^(?:\+(\d+) (\w+)(?: ([\d,]+))?|-(\d+))\n/gm)) {
    if (startTime === undefined) live.delete(Number(removed))
    else live.set(Number(added), { pid: Number(added), startTime, pipes: pipes?.split(',') ?? [] })
  }
  return [...live.values()]
}

/**
 * Which processes we started, on disk, so that the next start can end what a killed gateway left behind (F-23).
 *
 * One file per gateway process, `pids-<pid>-<start time>`, lines `+<pid> <start time>` and `-<pid>`, each appended in one write.
 * A pid alone proves nothing, since numbers are used again: pid and start time must both match, of the owner and of each child.
 */
import { execFile } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { readFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** After so many lines the file is written anew with the living only. */
const COMPACT_LINES = 1000
const FILE_NAME = /^pids-(\d+)-(\w+)(?:\.new)?$/

export class PidJournal implements Disposable {
  readonly path: string
  readonly #live = new Map<number, string>()
  #file: number
  #lines = 0

  private constructor(path: string) {
    this.path = path
    this.#file = openSync(path, 'a', 0o600)
  }

  /** Opens the journal of this process in the state folder, which is made if it is missing. Throws if it cannot be written. */
  static async open(folder: string, pid = process.pid): Promise<PidJournal> {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return new PidJournal(join(folder, `pids-${pid}-${(await startTimeOf(pid)) ?? '0'}`))
  }

  add(pid: number, startTime: string): void {
    this.#live.set(pid, startTime)
    this.#append(`+${pid} ${startTime}\n`)
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

  #compact(): void {
    const temporary = `${this.path}.new`
    writeFileSync(temporary, [...this.#live].map(([pid, startTime]) => `+${pid} ${startTime}\n`).join(''), { mode: 0o600 })
    renameSync(temporary, this.path)
    closeSync(this.#file)
    this.#file = openSync(this.path, 'a', 0o600)
    this.#lines = 0
  }
}

/**
 * Kills what dead gateways left behind, with its process groups, and deletes their journals; journals of living gateways are
 * not touched. Returns how many children were killed. Never rejects for a folder or a file that is not there.
 */
export const sweep = async (folder: string): Promise<number> => {
  let killed = 0
  for (const name of await readdir(folder).catch(() => [])) {
    const match = FILE_NAME.exec(name)
    if (match === null || (await startTimeOf(Number(match[1]))) === match[2]) continue
    const path = join(folder, name)
    for (const [pid, startTime] of living(await readFile(path, 'utf8').catch(() => ''))) {
      if ((await startTimeOf(pid)) === startTime && kill(pid)) killed++
    }
    await rm(path, { force: true })
  }
  return killed
}

/** The children that were added and not removed; a line cut short by the crash is no child. */
const living = (text: string): Map<number, string> => {
  const live = new Map<number, string>()
  for (const match of text.matchAll(/^(?:\+(\d+) (\w+)|-(\d+))\n/gm)) {
    if (match[2] === undefined) live.delete(Number(match[3]))
    else live.set(Number(match[1]), match[2])
  }
  return live
}

const kill = (pid: number): boolean => {
  try {
    process.kill(-pid, 'SIGKILL')
    return true
  } catch {
    return false
  }
}

/**
 * When the process was started, as a word that only means something to compare; `undefined` if it does not run (a zombie does
 * not). Linux: field 22 of /proc/PID/stat with the boot it counts from; elsewhere what `ps` says; Windows: never known.
 */
export const startTimeOf = async (pid: number, platform: NodeJS.Platform = process.platform): Promise<string | undefined> => {
  try {
    if (platform === 'linux') return startTimeInProc(pid)
    if (platform === 'win32') return undefined
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)], { timeout: 5000 })
    const [state = 'Z', ...start] = stdout.trim().split(/\s+/)
    return state.startsWith('Z') || start.length === 0 ? undefined : start.join('_').replaceAll(/\W/g, '_')
  } catch {
    return undefined
  }
}

const startTimeInProc = (pid: number): string | undefined => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The command's name, in parentheses, may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8)
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : `${fields[19]}_${boot}`
}

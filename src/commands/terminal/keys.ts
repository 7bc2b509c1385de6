/**
 * Keys of the terminal, one at a time and without being shown on it. The terminal then sends no signals of its own, so Ctrl-C, Ctrl-\
 * and Ctrl-Z are turned into the signals that it would have sent.
 *
 * The surprise: a process in the background (`trunkline up &`) is stopped by the kernel as soon as it touches the terminal, so nothing
 * is read there; after `fg` it is.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { ReadStream } from 'node:tty'

const SIGNALS: Readonly<Record<string, NodeJS.Signals>> = { '\u0003': 'SIGINT', '\u001a': 'SIGTSTP', '\u001c': 'SIGQUIT' }

/** What the process has to do with its job. */
export interface JobSignals {
  /** Sends the signal to all processes of the job, as the terminal does. */
  readonly raise: (signal: NodeJS.Signals) => void
  /** Calls back when the job goes on that was stopped. Returns how to stop listening. */
  readonly onContinue: (callback: () => void) => () => void
}

/** Calls back for each key that means no signal, until the returned function is called. The terminal is then as it was. */
export const readKeys = (
  terminal: ReadStream,
  { raise, onContinue }: JobSignals,
  pressed: (key: string) => void,
): (() => void) => {
  let isReading = false
  let isOver = false
  const onData = (chunk: Buffer): void => {
    const text = chunk.toString('utf8')
    // Arrows and the like begin with ESC; what follows is no key of its own.
    if (text.startsWith('\u001b')) return
    for (const key of text) {
      const signal = SIGNALS[key]
      // The shell gets the terminal as it was.
      if (signal === 'SIGTSTP') leave()
      if (signal === undefined) pressed(key)
      else raise(signal)
    }
  }
  const enter = (): void => {
    if (isReading || isOver || !isInForeground()) return
    isReading = true
    terminal.setRawMode(true)
    terminal.on('data', onData)
    terminal.resume()
  }
  const leave = (): void => {
    if (!isReading) return
    isReading = false
    terminal.off('data', onData)
    terminal.pause()
    if (isInForeground()) terminal.setRawMode(false)
  }
  // A terminal that is closed is an error of reading; SIGHUP says the same.
  const onError = (): void => leave()
  terminal.on('error', onError)
  const offContinue = onContinue(() => {
    // The shell has set the terminal to its own mode meanwhile.
    leave()
    enter()
  })
  enter()
  return () => {
    isOver = true
    offContinue()
    leave()
  }
}

/** Whether the process belongs to the job that the terminal listens to; where that cannot be found out, it does not. */
const isInForeground = (): boolean => {
  if (process.platform === 'win32') return true
  if (process.platform === 'linux') return isForemost(readStat())
  const { stdout } = spawnSync('ps', ['-o', 'pgid=,tpgid=', '-p', String(process.pid)], { encoding: 'utf8', timeout: 2_000 })
  return isForemost((stdout ?? '').trim().split(/\s+/))
}

/** The process group, and that of the terminal (proc_pid_stat(5), fields 5 and 8, behind the name in brackets). */
const readStat = (): readonly string[] => {
  try {
    const [, , group, , , foreground] = /^.*\) ([^]*)$/.exec(readFileSync('/proc/self/stat', 'latin1'))?.[1]?.split(' ') ?? []
    return [group ?? '', foreground ?? '']
  } catch {
    return []
  }
}

const isForemost = ([group = '', foreground]: readonly string[]): boolean => group !== '' && group === foreground

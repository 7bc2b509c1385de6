/**
 * Reads keys of the terminal one at a time and without echo. The terminal sends no signals in this mode, so Ctrl-C, Ctrl-\ and Ctrl-Z are
 * turned into the signals that it would send.
 *
 * The kernel stops a background process (`trunkline up &`) that changes the terminal, so nothing is read there; after `fg` it is.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { ReadStream } from 'node:tty'
import { statFields } from '../../transport/process/process-table.ts'
import { attempt } from '../../values/attempt.ts'

const SIGNALS: Readonly<Record<string, NodeJS.Signals>> = { '\u0003': 'SIGINT', '\u001a': 'SIGTSTP', '\u001c': 'SIGQUIT' }

/** Signals of the job to which the process belongs. */
export interface JobSignals {
  /** Sends the signal to all processes of the job, as the terminal does. */
  readonly raise: (signal: NodeJS.Signals) => void
  /** Calls back when the stopped job continues. Returns how to stop listening. */
  readonly onContinue: (callback: () => void) => () => void
}

/** Calls back for each key that is not a signal, until the returned function is called, which restores the terminal. */
export const readKeys = (
  terminal: ReadStream,
  { raise, onContinue }: JobSignals,
  pressed: (key: string) => void,
): (() => void) => {
  let isReading = false
  let isOver = false
  const onData = (chunk: Buffer): void => {
    const text = chunk.toString('utf8')
    // Escape sequences, such as those of arrows, are not keys.
    if (text.startsWith('\u001b')) return
    for (const key of text) {
      const signal = SIGNALS[key]
      // Restores the terminal for the shell.
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
  // Reading fails when the terminal closes; SIGHUP follows.
  const onError = (): void => leave()
  terminal.on('error', onError)
  const offContinue = onContinue(() => {
    // The shell has changed the mode of the terminal meanwhile.
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

/** Whether the process is in the foreground job of the terminal; false if that is unknown. */
const isInForeground = (): boolean => {
  if (process.platform === 'win32') return true
  if (process.platform === 'linux') return isForeground(readStat())
  const { stdout } = spawnSync('ps', ['-o', 'pgid=,tpgid=', '-p', String(process.pid)], { encoding: 'utf8', timeout: 2_000 })
  return isForeground((stdout ?? '').trim().split(/\s+/))
}

/** The process group, and that of the terminal (fields 5 and 8 of `/proc/self/stat`). */
const readStat = (): readonly string[] => {
  const [, , group = '', , , foreground = ''] = statFields(attempt(() => readFileSync('/proc/self/stat', 'latin1')) ?? '')
  return [group, foreground]
}

const isForeground = ([group = '', foreground]: readonly string[]): boolean => group !== '' && group === foreground

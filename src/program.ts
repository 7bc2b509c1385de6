/** The program: signals, uncaught errors and the exit code. Loaded by main.ts after it has checked the version of Node. */
import { getEventListeners } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { run } from './cli.ts'
import { CRASH_MS, EXIT } from './commands/terminal/io.ts'
import { readKeys } from './commands/terminal/keys.ts'
import type { JobSignals } from './commands/terminal/keys.ts'
import { remark } from './commands/terminal/print.ts'
import { Redactor } from './redactor.ts'

const interrupt = new AbortController()
const hurry = new AbortController()
const crash = new AbortController()
const redactor = new Redactor()
const hadTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY

/** The first signal ends in order, the second at once (F-22). */
const onSignal = (): void => {
  if (interrupt.signal.aborted) hurry.abort()
  interrupt.abort()
}
/** Number of programs that have the terminal: its Ctrl-C goes to every process of the job, and is meant for them. */
let borrowers = 0
/** After an uncaught error the state of the process is unknown: the error is logged, and the process ends in order (F-31). */
const onUnknown = (error: unknown): void => {
  // A serving process logs the error itself.
  if (getEventListeners(crash.signal, 'abort').length === 0)
    remark(
      { stdout: process.stdout, stderr: process.stderr, redactor },
      `unexpected: ${error instanceof Error ? error.stack : String(error)}`,
    )
  crash.abort(error)
  if (interrupt.signal.aborted) return
  setTimeout(() => process.exit(EXIT.internal), CRASH_MS).unref()
  interrupt.abort()
}
/** Whether the terminal in which the process was started is closed: then that is the meaning of SIGHUP. */
const isTerminalGone = (): boolean => {
  if (!hadTerminal) return false
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}
const job: JobSignals = {
  // On Windows there are no jobs, and `kill` would end the process at once.
  raise: (signal) => void (process.platform === 'win32' ? process.emit(signal) : process.kill(0, signal)),
  onContinue: (callback) => {
    process.on('SIGCONT', callback)
    return () => process.off('SIGCONT', callback)
  },
}
process.on('uncaughtException', onUnknown)
process.on('unhandledRejection', onUnknown)
process.on('SIGTERM', onSignal)
process.on('SIGINT', () => {
  if (borrowers === 0) onSignal()
})
// For a command that does not reload, it is the end: by default the processes of its servers would be left.
process.on('SIGHUP', () => {
  if (process.listenerCount('SIGHUP') === 1) onSignal()
})
hurry.signal.addEventListener('abort', () => process.exit(130))
const atExit = new Set<() => void>()
process.on('exit', () => {
  for (const callback of atExit) callback()
})

/** Errors of a disk that is full. Every other error means that the reader has left (`trunkline tools | head -1`). */
const FULL: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
let fullError: NodeJS.ErrnoException | undefined
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (FULL.has(error.code)) fullError = error
})
process.stderr.on('error', () => undefined)

/** Whether a part of the output is lost; reports it. */
const isOutputLost = (): boolean => {
  if (fullError === undefined) return false
  remark({ stdout: process.stdout, stderr: process.stderr, redactor }, `the output could not be written: ${fullError.message}`)
  return true
}

/** Longest time that what goes on after the end, such as an open stdin, may keep the process. */
const DRAIN_MS = 100

/** Lets the process end by itself: `process.exit` may wait for ever for the threads of the engine (decision 0318). */
const end = (exitCode: number): void => {
  process.exitCode = exitCode
  setTimeout(() => process.exit(), DRAIN_MS).unref()
}

// No top-level await: the single executable is bundled as one script, which does not allow it.
void run(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  interrupted: interrupt.signal,
  crashed: crash.signal,
  redactor,
  onHangup: (callback) => {
    const onHangup = (): void => (isTerminalGone() ? onSignal() : callback())
    process.on('SIGHUP', onHangup)
    return () => process.off('SIGHUP', onHangup)
  },
  atExit: (callback) => {
    atExit.add(callback)
    return () => void atExit.delete(callback)
  },
  lendTerminal: () => {
    borrowers++
    return () => void borrowers--
  },
  onKey: process.stdin.isTTY ? (pressed) => readKeys(process.stdin, job, pressed) : undefined,
}).then((exitCode) => end(crash.signal.aborted || isOutputLost() ? EXIT.internal : exitCode))

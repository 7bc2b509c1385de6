/**
 * Runs a program that prints one value, without a shell, for a limited time. Its stdout is secret also where it fails: an error contains
 * the exit code and stderr, without anything of the value.
 */
import { execFile } from 'node:child_process'
import type { ExecFileException } from 'node:child_process'

export interface Program {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly timeoutMs: number
}

/** The output, or the reason why there is none. `isMissing`: the program does not exist. */
export type Printed = { readonly text: string } | { readonly reason: string; readonly isMissing: boolean }

const MAX_OUTPUT_BYTES = 64 * 1024
const MAX_ERROR_CHARACTERS = 300
/** Shorter lines of its output are not hidden in its errors: they are ordinary words. */
const SHORTEST_HIDDEN = 4

/** Never rejects. `known` is called when the program has ended, and returns further values that must not be repeated. */
export const runProgram = (program: Program, known: () => readonly string[]): Promise<Printed> =>
  new Promise((resolve) => {
    const { cwd, env, timeoutMs } = program
    const [command = '', ...args] = program.argv
    const limits = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES, windowsHide: true } as const
    const child = execFile(command, args, { cwd, env: { ...env }, ...limits }, (error, stdout, stderr) => {
      if (error === null) return resolve({ text: stdout.replace(/\r?\n$/, '') })
      const text = withoutValues(stderr.trim(), [stdout, ...known()])
      const cut = text.length > MAX_ERROR_CHARACTERS ? `${text.slice(0, MAX_ERROR_CHARACTERS)}…` : text
      const reason = `${command} ${endOf(error, timeoutMs)}${cut && `: ${cut}`}`
      resolve({ reason, isMissing: error.code === 'ENOENT' })
    })
    // Stdin is closed: a program that asks for input ends instead of waiting.
    child.stdin?.on('error', () => undefined).end()
  })

const endOf = ({ code, signal, killed }: ExecFileException, timeoutMs: number): string => {
  if (code === 'ENOENT') return 'was not found'
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `printed more than ${MAX_OUTPUT_BYTES / 1024} KiB`
  if (killed === true) return `did not end within ${timeoutMs / 1_000} s`
  if (signal !== undefined && signal !== null) return `was ended by ${signal}`
  return typeof code === 'number' ? `exited with code ${code}` : `could not be started (${String(code)})`
}

/** The text in one line, with every value and every line of one replaced. */
const withoutValues = (text: string, values: readonly string[]): string => {
  const lines = values.flatMap((value) => [value, ...value.split(/\r?\n/)]).map((line) => line.trim())
  const hidden = lines.filter((line) => line.length >= SHORTEST_HIDDEN).sort((a, b) => b.length - a.length)
  return hidden.reduce((shown, line) => shown.replaceAll(line, '***'), text).replaceAll(/\s+/g, ' ')
}

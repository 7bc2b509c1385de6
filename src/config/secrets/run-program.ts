/**
 * Runs a program that prints one value, without a shell, for a bounded time. What it printed is a secret also where it failed, so
 * an end that is told holds its exit code and what it said on stderr, and nothing of the value.
 */
import { execFile } from 'node:child_process'
import type { ExecFileException } from 'node:child_process'

export interface Program {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly timeoutMs: number
}

/** What it printed; or in words why that does not count. `isMissing`: there is no such program. */
export type Printed = { readonly text: string } | { readonly reason: string; readonly isMissing: boolean }

const MAX_OUTPUT_BYTES = 64 * 1024
const MAX_SAID = 300
/** Shorter lines of what it printed are not taken out of what it said: they are ordinary words. */
const SHORTEST_HIDDEN = 4

/** Never rejects. `known`: asked at its end for further values that must not be repeated. */
export const runProgram = (program: Program, known: () => readonly string[]): Promise<Printed> =>
  new Promise((resolve) => {
    const { cwd, env, timeoutMs } = program
    const [command = '', ...args] = program.argv
    const limits = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES, windowsHide: true } as const
    const child = execFile(command, args, { cwd, env: { ...env }, ...limits }, (error, stdout, stderr) => {
      if (error === null) return resolve({ text: stdout.replace(/\r?\n$/, '') })
      const said = withoutValues(stderr.trim(), [stdout, ...known()])
      const words = said === '' ? '' : `: ${said.length > MAX_SAID ? `${said.slice(0, MAX_SAID)}…` : said}`
      resolve({ reason: `${command} ${endOf(error, timeoutMs)}${words}`, isMissing: error.code === 'ENOENT' })
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

/** In one line, and none of the values in it, whole or line by line. */
const withoutValues = (said: string, values: readonly string[]): string => {
  const lines = values.flatMap((value) => [value, ...value.split(/\r?\n/)]).map((line) => line.trim())
  const hidden = lines.filter((line) => line.length >= SHORTEST_HIDDEN).sort((a, b) => b.length - a.length)
  return hidden.reduce((text, line) => text.replaceAll(line, '***'), said).replaceAll(/\s+/g, ' ')
}

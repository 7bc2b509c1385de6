/**
 * The only writer of the commands: data goes to stdout, remarks to stderr. It removes control characters from texts of servers, files and
 * arguments, so that no command can forget to escape; only the writer adds colour (T-15).
 */
import type { Writable } from 'node:stream'
import { escapeJson, printable } from '../../log.ts'
import type { Redactor } from '../../redactor.ts'

export type Colour = 'green' | 'yellow' | 'red' | 'dim'
const CODES: Readonly<Record<Colour, number>> = { green: 32, yellow: 33, red: 31, dim: 2 }

/** A part of a line and its colour. The writer turns it into escape codes. */
export interface Painted {
  readonly text: string
  readonly colour: Colour
}

/** One line. A line break in it is escaped like every other control character. */
export type Line = string | Painted | readonly (string | Painted)[]

/** Colours a part of a line, or returns it unchanged. */
export type Paint = (text: string, colour: Colour) => string | Painted

type Env = Readonly<Record<string, string | undefined>>

interface Streams {
  readonly stdout: Writable & { isTTY?: boolean }
  readonly stderr: Writable
  readonly redactor: Redactor
}

/** `NO_COLOR` with any value disables colours (no-color.org), and so does a terminal without them (`TERM=dumb`). */
export const painter = (stream: { isTTY?: boolean }, env: Env): Paint =>
  isDrawn(stream, env) && !env['NO_COLOR'] ? (text, colour) => ({ text, colour }) : (text) => text

/** Whether a stream is a terminal with escape codes; otherwise output is printed line by line. */
export const isDrawn = (stream: { isTTY?: boolean }, { TERM: terminal }: Env): boolean =>
  stream.isTTY === true && terminal !== 'dumb'

/** Fires when the reader of stdout has closed its end. */
export const closedOutput = ({ stdout }: Pick<Streams, 'stdout'>): AbortSignal => {
  const closed = new AbortController()
  stdout.once('error', () => closed.abort())
  return closed.signal
}

/** Prints lines of data. Resolves when they are written, or when the reader has closed its end. */
export const printLines = ({ stdout }: Streams, lines: readonly Line[]): Promise<void> => write(stdout, formatLines(lines))

/** Prints a text of several lines, such as a tool's result. Tabs become spaces. */
export const printText = ({ stdout }: Streams, text: string): Promise<void> => write(stdout, formatText(text))

/** Prints the text of a file unchanged, since it may become one; on a terminal as `printText` does (T-15). */
export const printFile = (streams: Streams, text: string): Promise<void> =>
  streams.stdout.isTTY === true ? printText(streams, text) : write(streams.stdout, text)

/** Prints the result of a command: `value` with `--json`, else the lines. */
export const printResult = (
  { io, json, context }: { readonly io: Streams; readonly json: boolean; readonly context: { readonly env: Env } },
  value: unknown,
  lines: (paint: Paint) => readonly Line[],
): Promise<void> => (json ? printJson(io, value) : printLines(io, lines(painter(io.stdout, context.env))))

/** Prints one line of JSON. */
export const printJson = (streams: Streams, value: unknown): Promise<void> => printJsonText(streams, JSON.stringify(value))

/** Prints JSON text on one line. Numbers and the order of keys stay; strings keep their meaning. */
export const printJsonText = ({ stdout }: Streams, json: string): Promise<void> => write(stdout, `${escapeJson(json)}\n`)

/** Size of the terminal in characters; `undefined`: stderr is not a terminal with a movable cursor. */
export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/** `term`: the variable `TERM`; `dumb` terminals have no cursor. */
export const terminalSize = ({ stderr }: Streams, term: string | undefined): TerminalSize | undefined => {
  // Cast: a stream to a terminal has these members.
  const { isTTY, columns, rows } = stderr as Writable & { isTTY?: boolean; columns?: number; rows?: number }
  return isTTY !== true || term === 'dumb' ? undefined : { columns: columns || 80, rows: rows || 24 }
}

/** Calls back when the size of the terminal changes. Returns how to stop. */
export const onResize = ({ stderr }: Streams, callback: () => void): (() => void) => {
  stderr.on('resize', callback)
  return () => void stderr.off('resize', callback)
}

/** For a screen that is the result of a command, and no remark. */
export const drawnOnStdout = <T extends Streams>(io: T): T => ({ ...io, stderr: io.stdout })

/** Replaces the last `rows` rows of the terminal; `undefined`: all of it. Each line must fit into one row. */
export const redrawLines = ({ stderr, redactor }: Streams, rows: number | undefined, lines: readonly Line[]): void => {
  const back = rows === undefined ? '\u001b[H\u001b[2J' : rows === 0 ? '' : `\u001b[${rows}F`
  // Wrapping is off, so that the terminal cuts rows that are wider than computed, and the number of rows stays right.
  stderr.write(`${back}\u001b[J\u001b[?7l${redactor.hide(formatLines(lines))}\u001b[?7h`)
}

/** Replaces the remark on the current line, cut at the width of the terminal. */
export const remarkInPlace = (
  { stderr, redactor }: Streams & { readonly stderr: { readonly columns?: number } },
  text: string,
): void => {
  const shown = printable(redactor.hide(text))
  const width = (stderr.columns ?? 80) - 1
  stderr.write(`\r\u001b[2K${shown.length > width ? `${shown.slice(0, width - 1)}…` : shown}`)
}

/** Clears such a remark. */
export const clearLine = ({ stderr }: Pick<Streams, 'stderr'>): void => {
  stderr.write('\r\u001b[2K')
}

/** Prints a text of our own unchanged: the JSON Schema. */
export const printVerbatim = ({ stdout }: Streams, text: string): Promise<void> => write(stdout, text)

/** Prints remarks and errors to stderr, without the secrets of the configuration. */
export const remark = ({ stderr, redactor }: Streams, text: string): void => {
  stderr.write(formatText(redactor.hide(text)))
}

/** Prints remarks in lines that may be coloured. */
export const remarkLines = ({ stderr, redactor }: Streams, lines: readonly Line[]): void => {
  stderr.write(redactor.hide(formatLines(lines)))
}

/** Prints a question without a line break; or the line break after a hidden answer. */
export const prompt = ({ stderr }: Streams, text: string): void => {
  stderr.write(text === '\n' ? text : printable(text))
}

/** Prints one line of JSON to stderr. */
export const remarkJson = ({ stderr, redactor }: Streams, value: unknown): void => {
  stderr.write(`${escapeJson(redactor.hideJson(JSON.stringify(value)))}\n`)
}

const write = (stream: Writable, text: string): Promise<void> =>
  new Promise((resolve) => void stream.write(text, () => resolve()))

/** Each line with its line break and escape codes. */
export const formatLines = (lines: readonly Line[]): string =>
  lines.map((line) => `${(isParts(line) ? line : [line]).map(formatPart).join('')}\n`).join('')

const isParts = (line: Line): line is readonly (string | Painted)[] => Array.isArray(line)

/** The parts of a line without control characters, with their printed width. */
export const partsOf = (line: Line): readonly (string | Painted)[] =>
  (isParts(line) ? line : [line]).map((part) =>
    typeof part === 'string' ? printable(part) : { ...part, text: printable(part.text) },
  )

const formatPart = (part: string | Painted): string =>
  typeof part === 'string' ? printable(part) : `\u001b[${CODES[part.colour]}m${printable(part.text)}\u001b[0m`

/** With exactly one line break at the end. */
const formatText = (text: string): string =>
  text
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
    .map((line) => `${printable(expandTabs(line))}\n`)
    .join('')

const expandTabs = (line: string): string =>
  line.split('\t').reduce((before, part) => `${before.padEnd((Math.floor(before.length / TAB) + 1) * TAB)}${part}`)

const TAB = 8

/**
 * The last output of a process, for `ps`, the log and the reason of its exit (F-11). All output is read, but only a little is
 * kept, so that a process that floods its stderr uses bounded memory.
 */
import { LineFramer } from '../../wire/framing/lines.ts'

export interface OutputTailOptions {
  /** Maximum size of the kept lines. A reload may change it. */
  readonly maxBytes: () => number
  /** Longer lines are cut. */
  readonly maxLineBytes: number
  /** Maximum number of lines passed to `onLine` in one second. */
  readonly maxLinesPerSecond: number
  readonly onDropped?: () => void
  /** A line, and how many lines before it were skipped because of the rate. */
  readonly onLine?: (line: string, skipped: number) => void
}

export const DEFAULT_OUTPUT_TAIL = { maxBytes: () => 64 * 1024, maxLineBytes: 8 * 1024, maxLinesPerSecond: 100 }

const SECOND_MS = 1_000
/** Memory of a kept line in addition to its bytes. */
const LINE_OVERHEAD = 64

export class OutputTail {
  readonly #options: OutputTailOptions
  readonly #lines: Buffer[] = []
  #bytes = 0
  #second = -Infinity
  #passed = 0
  #skipped = 0
  /** Passes on the last line of a second in which lines were skipped. */
  #late: NodeJS.Timeout | undefined

  constructor(options: Partial<OutputTailOptions> = {}) {
    this.#options = { ...DEFAULT_OUTPUT_TAIL, ...options }
  }

  /** A pipe of the process, which may end within a line. Each has lines of its own. */
  pipe(): Pick<LineFramer, 'push' | 'end'> {
    const { maxLineBytes } = this.#options
    const add = (line: Buffer): void => this.#add(line)
    const framer = new LineFramer(
      { line: add, overflow: add, discarded: () => {} },
      { maxBytes: maxLineBytes, headBytes: maxLineBytes },
    )
    // Lines are copied: a short one would keep all that was read with it.
    return { push: (chunk) => framer.push(chunk, true), end: () => framer.end() }
  }

  /** A line that was read elsewhere. */
  add(line: string): void {
    this.#add(Buffer.from(line))
  }

  /** The last lines, oldest first. */
  last(count: number): string[] {
    return this.#lines.slice(-count).map(String)
  }

  #add(line: Buffer): void {
    this.#lines.push(line)
    this.#bytes += line.length + LINE_OVERHEAD
    while (this.#bytes > this.#options.maxBytes()) {
      // Cast: while the byte count is above 0, there are lines.
      this.#bytes -= this.#lines.shift()!.length + LINE_OVERHEAD
      this.#options.onDropped?.()
    }
    if (this.#options.onLine !== undefined) this.#report(line)
  }

  #report(line: Buffer): void {
    const now = performance.now()
    if (now - this.#second >= SECOND_MS) this.#beginSecond(now)
    if (this.#passed < this.#options.maxLinesPerSecond) return this.#pass(line)
    this.#skipped++
    this.#late ??= setTimeout(this.#passLast, SECOND_MS - (now - this.#second)).unref()
  }

  #beginSecond(now: number): void {
    clearTimeout(this.#late)
    this.#late = undefined
    this.#second = now
    this.#passed = 0
  }

  #pass(line: Buffer): void {
    this.#passed++
    const skipped = this.#skipped
    this.#skipped = 0
    this.#options.onLine?.(String(line), skipped)
  }

  /** The process may print nothing more: the last of the skipped lines often has the reason. */
  readonly #passLast = (): void => {
    this.#beginSecond(performance.now())
    const line = this.#lines.at(-1)
    if (line === undefined) return
    this.#skipped--
    this.#pass(line)
  }
}

/** Match unindented lines only: stack frames, quoted source and causes are indented. */
const REASONS = [
  // JavaScript, Python, Java, C#: the last match, since a chain of exceptions ends with the thrown one.
  /^(?:Uncaught |Exception in thread "[^"]*" |Unhandled exception\. )?(?:[\w$]+\.)*\w*(?:Error|Exception)(?: \[\w+\])?:? \S/,
  /^(?:npm (?:error|ERR!)) (?!code |errno |syscall |path |dest |A complete log|Log files|\S*[/\\]_logs)\S/,
  /^(?:panic:|fatal error:|thread '[^']*' (?:\(\d+\) )?panicked at|\w+: fatal:)/,
  /^(?:\S+: )?(?:error|fatal|ERROR|FATAL|Error|Fatal)\b[:\]]? ?\S/,
]
const NO_REASON = /^\s*$|^Node\.js v\d|^\s+at |^npm (?:error|ERR!) (?:A complete log|\S*[/\\]_logs)/

/** Terminal escape sequences for colours and window titles (ECMA-48 CSI and OSC). */
const COLOURS = /\u001b(?:\[[0-9;:?]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g

export const withoutColours = (line: string): string => line.replaceAll(COLOURS, '')

/** The line with the reason of an exit, without colours, or the last informative line; `undefined`: none. `printed`: oldest first. */
export const statedReason = (printed: readonly string[]): string | undefined => {
  const lines = printed.map(withoutColours)
  for (const [at, pattern] of REASONS.entries()) {
    const stated = at === 1 ? lines.find((line) => pattern.test(line)) : lines.findLast((line) => pattern.test(line))
    if (stated !== undefined) return stated.trim()
  }
  return lines.findLast((line) => !NO_REASON.test(line))?.trim()
}

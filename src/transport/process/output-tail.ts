/**
 * What a process printed last, for `ps`, for the log and for the reason of its end (F-11). Everything is read, little is kept:
 * a process that floods its stderr costs reading it and no more.
 */
import { LineFramer } from '../../wire/framing/lines.ts'

export interface OutputTailOptions {
  /** Of the lines kept. */
  readonly maxBytes: number
  /** Longer lines are cut. */
  readonly maxLineBytes: number
  /** Lines handed to `onLine` in one second. */
  readonly maxLinesPerSecond: number
  readonly onDropped?: () => void
  /** A line, and how many before it were kept from it by the rate. */
  readonly onLine?: (line: string, skipped: number) => void
}

export const DEFAULT_OUTPUT_TAIL = { maxBytes: 64 * 1024, maxLineBytes: 8 * 1024, maxLinesPerSecond: 100 }

/** What a kept line costs beside its bytes. */
const LINE_OVERHEAD = 64

export class OutputTail {
  readonly #options: OutputTailOptions
  readonly #framer: LineFramer
  readonly #lines: Buffer[] = []
  #bytes = 0
  #second = -Infinity
  #passed = 0
  #skipped = 0

  constructor(options: Partial<OutputTailOptions> = {}) {
    this.#options = { ...DEFAULT_OUTPUT_TAIL, ...options }
    const add = (line: Buffer): void => this.#add(line)
    const limits = { maxBytes: this.#options.maxLineBytes, headBytes: this.#options.maxLineBytes }
    this.#framer = new LineFramer({ line: add, overflow: add, discarded: () => {} }, limits)
  }

  push(chunk: Buffer): void {
    this.#framer.push(chunk)
  }

  /** A line from another pipe of the process. */
  add(line: string): void {
    this.#add(Buffer.from(line))
  }

  /** The output has ended, perhaps within a line. */
  end(): void {
    this.#framer.end()
  }

  /** The last lines, oldest first. */
  last(count: number): string[] {
    return this.#lines.slice(-count).map(String)
  }

  #add(line: Buffer): void {
    this.#lines.push(line)
    this.#bytes += line.length + LINE_OVERHEAD
    while (this.#bytes > this.#options.maxBytes) {
      // Cast: the bytes are those of lines.
      this.#bytes -= this.#lines.shift()!.length + LINE_OVERHEAD
      this.#options.onDropped?.()
    }
    if (this.#options.onLine !== undefined) this.#report(line)
  }

  #report(line: Buffer): void {
    const now = performance.now()
    if (now - this.#second >= 1000) {
      this.#second = now
      this.#passed = 0
    }
    if (this.#passed >= this.#options.maxLinesPerSecond) {
      this.#skipped++
      return
    }
    this.#passed++
    const skipped = this.#skipped
    this.#skipped = 0
    this.#options.onLine?.(String(line), skipped)
  }
}

/** Unindented, for stack frames, quoted source and causes are indented. */
const STATES = [
  // JavaScript, Python, Java, C#: the last one, since chained exceptions end with the one that was thrown.
  /^(?:Uncaught |Exception in thread "[^"]*" |Unhandled exception\. )?(?:[\w$]+\.)*\w*(?:Error|Exception)(?: \[\w+\])?:? \S/,
  /^(?:npm (?:error|ERR!)) (?!code |errno |syscall |path |dest |A complete log|Log files|\S*[/\\]_logs)\S/,
  /^(?:panic:|fatal error:|thread '[^']*' (?:\(\d+\) )?panicked at|\w+: fatal:)/,
  /^(?:\S+: )?(?:error|fatal|ERROR|FATAL|Error|Fatal)\b[:\]]? ?\S/,
]
const SAYS_NOTHING = /^\s*$|^Node\.js v\d|^\s+at |^npm (?:error|ERR!) (?:A complete log|\S*[/\\]_logs)/

/** What colours a line in a terminal, or names its window (ECMA-48 CSI and OSC). */
const COLOURS = /\u001b(?:\[[0-9;:?]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g

export const withoutColours = (line: string): string => line.replaceAll(COLOURS, '')

/** The line that states why a process ended, without its colours, else the last one that says anything; `undefined`: none does. Oldest first. */
export const statedReason = (printed: readonly string[]): string | undefined => {
  const lines = printed.map(withoutColours)
  for (const [at, pattern] of STATES.entries()) {
    const stated = at === 1 ? lines.find((line) => pattern.test(line)) : lines.findLast((line) => pattern.test(line))
    if (stated !== undefined) return stated.trim()
  }
  return lines.findLast((line) => !SAYS_NOTHING.test(line))?.trim()
}

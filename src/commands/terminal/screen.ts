/**
 * Lines on a terminal that are updated in place: only rows that differ are drawn. The log is part of the screen, as its last lines, because
 * other output would appear in the middle of it.
 *
 * The terminal does not report which rows it wrapped, so lines are wrapped here, and lines beyond its height are left out.
 */
import { isDeepStrictEqual } from 'node:util'
import { Writable } from 'node:stream'
import type { Io } from './io.ts'
import { onResize, partsOf, redrawLines, remark, terminalSize } from './print.ts'
import type { Line, Painted, TerminalSize } from './print.ts'

/** Lines of the log that stay on the screen. */
const LOG_LINES = 4
/** Indentation of the further rows of a wrapped line. */
const INDENT = '      '

/** The content, from top to bottom. On a low terminal rows of `middle` are left out, and `rest` shows their number. */
export interface Shown {
  readonly top: readonly Line[]
  readonly middle: readonly Line[]
  readonly bottom: readonly Line[]
  readonly rest: (rows: number) => Line
}

export const NOTHING: Shown = { top: [], middle: [], bottom: [], rest: () => '' }

type Parts = readonly (string | Painted)[]

export class LiveScreen implements Disposable {
  /** Replaces stderr for the log. */
  readonly log: Writable & { readonly isTTY: true }
  readonly #io: Io
  readonly #term: string | undefined
  readonly #stopResizing: () => void
  #shown: Shown = NOTHING
  #drawn: readonly Parts[] = []
  #logged: readonly string[] = []
  #isOver = false

  constructor(io: Io, term: string | undefined) {
    this.#io = io
    this.#term = term
    this.#stopResizing = onResize(io, () => this.#draw(undefined))
    const take = (text: string): void => {
      if (this.#isOver) return remark(io, text)
      this.#logged = [...this.#logged, ...text.split('\n').filter((line) => line !== '')].slice(-LOG_LINES)
      this.#draw(this.#drawn)
    }
    this.log = Object.assign(
      new Writable({ decodeStrings: false, write: (chunk: string, _encoding, done) => (take(chunk), done()) }),
      { isTTY: true as const },
    )
  }

  show(shown: Shown): void {
    this.#shown = shown
    this.#draw(this.#drawn)
  }

  /** Leaves the content on the terminal; later log lines follow below. */
  [Symbol.dispose](): void {
    this.#isOver = true
    this.#stopResizing()
  }

  /** `drawn`: the rows on the terminal; `undefined`: unknown. */
  #draw(drawn: readonly Parts[] | undefined): void {
    const size = terminalSize(this.#io, this.#term)
    if (this.#isOver || size === undefined) return
    const rows = rowsOf(this.#shown, this.#logged, size)
    const same = drawn === undefined ? 0 : rows.findIndex((row, at) => !isDeepStrictEqual(row, drawn[at]))
    if (drawn !== undefined && same < 0 && rows.length === drawn.length) return
    const from = same < 0 ? rows.length : same
    redrawLines(this.#io, drawn === undefined ? undefined : drawn.length - from, rows.slice(from))
    this.#drawn = rows
  }
}

/** At most one row less than the terminal has, because the cursor is below them. */
const rowsOf = ({ top, middle, bottom, rest }: Shown, logged: readonly string[], { columns, rows }: TerminalSize): Parts[] => {
  const wrapped = (lines: readonly Line[]): Parts[] => lines.flatMap((line) => wrapLine(line, columns))
  const cut = (lines: readonly Line[]): Parts[] => lines.map((line) => cutLine(line, columns))
  const [above, below, log] = [wrapped(top), wrapped(bottom), cut(logged)]
  const room = Math.max(0, rows - 1 - above.length - below.length)
  // The log gets the remaining rows, at least one.
  const forMiddle = room - Math.min(log.length, 1)
  const whole = [wrapped(middle), cut(middle)].find((all) => all.length <= forMiddle)
  const most = Math.max(0, forMiddle - 1)
  const between = whole ?? [...cut(middle.slice(0, most)), cutLine(rest(middle.length - most), columns)]
  const forLog = Math.max(0, room - between.length)
  return [...above, ...between, ...below, ...log.slice(Math.max(0, log.length - forLog))].slice(0, Math.max(1, rows - 1))
}

/** The line cut to one row. */
const cutLine = (line: Line, columns: number): Parts => {
  const [first] = wrapLine(line, columns)
  const [shorter = [], ...left] = wrapLine(line, columns - 1)
  return left.length === 0 || first === undefined ? (first ?? []) : [...shorter, '…']
}

/** The line in rows of at most `columns` characters, broken at spaces where possible. */
export const wrapLine = (line: Line, columns: number): Parts[] => {
  const most = Math.max(columns, 2 * INDENT.length)
  const rows: (string | Painted)[][] = [[]]
  let width = 0
  for (const part of partsOf(line)) {
    const [text, painted] = typeof part === 'string' ? [part, undefined] : [part.text, part]
    for (const word of text.match(/\s+|\S+/g) ?? []) {
      let left = word
      while (left !== '') {
        const fitting = width + widthOf(left) <= most ? left : width > INDENT.length ? '' : fittingStart(left, most - width)
        if (fitting !== '') {
          // Cast: `rows` is not empty.
          rows.at(-1)!.push(painted === undefined ? fitting : { ...painted, text: fitting })
          width += widthOf(fitting)
        }
        left = left.slice(fitting.length)
        if (left === '') break
        rows.push([INDENT])
        width = INDENT.length
        // Spaces at a break are dropped.
        if (/^\s/.test(left)) left = ''
      }
    }
  }
  return rows
}

const fittingStart = (word: string, columns: number): string => {
  let start = ''
  for (const character of word) {
    if (widthOf(start + character) > columns && start !== '') break
    start += character
  }
  return start
}

/** Columns on a terminal: two for East Asian characters and emoji, none for combining marks. */
const widthOf = (text: string): number => {
  let width = 0
  for (const character of text) width += /\p{M}|\u200d/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u

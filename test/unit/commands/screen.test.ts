/** The live screen on a terminal of its own: what stands there after each change, as a terminal would show it. */
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { LiveScreen, wrapLine } from '../../../src/commands/terminal/screen.ts'
import type { Line } from '../../../src/commands/terminal/print.ts'
import { Redactor } from '../../../src/redactor.ts'
import { ioWith } from '../../support/io.ts'

/** A terminal that knows the few sequences a screen may use, and fails on any other. */
const terminal = (columns: number, rows: number) => {
  const cells: string[] = []
  let row = 0
  const written: string[] = []
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns, rows })
  stderr.on('data', (chunk: Buffer) => {
    written.push(chunk.toString())
    // oxlint-disable-next-line no-control-regex
    for (const [token, text] of chunk.toString().matchAll(/\u001b\[[?\d;]*[A-Za-z]|\n|([^\u001b\n]+)/g)) {
      const up = /^\u001b\[(\d+)F$/.exec(token)?.[1]
      if (up !== undefined) row -= Number(up)
      else if (token === '\u001b[J') cells.length = row
      else if (token === '\u001b[H') row = 0
      else if (token === '\u001b[2J') cells.length = 0
      else if (token === '\n') {
        cells[row] ??= ''
        row++
      } else if (text !== undefined) cells[row] = (cells[row] ?? '') + text
      else if (!/^\u001b\[(\?7[lh]|\d+m)$/.test(token)) throw new Error(`unknown sequence ${JSON.stringify(token)}`)
      if (row < 0 || row >= rows) throw new Error(`row ${row} of ${rows}`)
    }
  })
  const io = ioWith({ stderr, redactor: new Redactor(['s3cret-value']) })
  return { io, stderr, written, shown: () => [...cells] }
}

const shown = (middle: readonly Line[], bottom: readonly Line[] = []) => ({
  top: ['top'],
  middle,
  bottom,
  rest: (lines: number) => `${lines} more`,
})

test('what changes is drawn in place, and only the rows from the first that differs', () => {
  const { io, shown: seen, written } = terminal(40, 10)
  using screen = new LiveScreen(io, 'xterm')
  screen.show(shown(['a starting', 'b starting'], ['end']))
  screen.show(shown(['a starting', [{ text: 'b healthy', colour: 'green' }]], ['end']))
  expect(seen()).toEqual(['top', 'a starting', 'b healthy', 'end'])
  expect(written.at(-1)).not.toContain('a starting')
  const draws = written.length
  screen.show(shown(['a starting', [{ text: 'b healthy', colour: 'green' }]], ['end']))
  expect(written).toHaveLength(draws)
  screen.show(shown(['a healthy']))
  expect(seen()).toEqual(['top', 'a healthy'])
})

test('on a low terminal lines are cut before they are left out, and their number is said', () => {
  const { io, shown: seen } = terminal(20, 8)
  using screen = new LiveScreen(io, 'xterm')
  screen.show(shown(['one two three four five six', 'b'], ['end']))
  expect(seen()).toEqual(['top', 'one two three four ', '      five six', 'b', 'end'])
  screen.show(shown(['one two three four five six', 'b', 'c', 'd', 'e'], ['end']))
  expect(seen()).toEqual(['top', 'one two three four …', 'b', 'c', 'd', 'e', 'end'])
  screen.show(shown(['a', 'b', 'c', 'd', 'e', 'f', 'g'], ['end']))
  expect(seen()).toEqual(['top', 'a', 'b', 'c', 'd', '3 more', 'end'])
})

test('the last lines of the log stand below, without secrets; afterwards the log goes on below the screen', () => {
  const { io, shown: seen } = terminal(40, 8)
  const screen = new LiveScreen(io, 'xterm')
  screen.show(shown(['a']))
  for (const number of [1, 2, 3, 4, 5]) screen.log.write(`line ${number} s3cret-value\n`)
  expect(seen()).toEqual(['top', 'a', ...[2, 3, 4, 5].map((number) => `line ${number} ***`)])
  screen[Symbol.dispose]()
  screen.show(shown(['b']))
  screen.log.write('the end\n')
  expect(seen().slice(0, 2)).toEqual(['top', 'a'])
  expect(seen().at(-1)).toBe('the end')
})

test('another size of the terminal draws all of it', () => {
  const { io, stderr, shown: seen } = terminal(40, 10)
  using screen = new LiveScreen(io, 'xterm')
  screen.show(shown(['one two three four five six']))
  stderr.columns = 16
  stderr.emit('resize')
  expect(seen()).toEqual(['top', 'one two three ', '      four five ', '      six'])
})

test.each([
  [
    'a long word is broken where the row ends',
    'abcdefghijklmnopqrstuvwxyz',
    12,
    ['abcdefghijkl', '      mnopqr', '      stuvwx', '      yz'],
  ],
  ['wide characters need two columns', '日本語日本語日', 12, ['日本語日本語', '      日']],
  ['marks need none', 'e\u0301'.repeat(12), 12, ['e\u0301'.repeat(12)]],
  ['a narrow terminal is taken for one of 12 columns', 'abcdefghijklm', 1, ['abcdefghijkl', '      m']],
  ['nothing is one empty row', '', 20, ['']],
])('%s', (_name, line, columns, rows) => {
  expect(wrapLine(line, columns).map((row) => row.map((part) => (typeof part === 'string' ? part : part.text)).join(''))).toEqual(
    rows,
  )
})

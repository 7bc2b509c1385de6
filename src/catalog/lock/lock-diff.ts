/** Two definitions compared by their lines, as they stand in a lock file: what a person reads of a change. */
import { membersAt } from '../../wire/message/members.ts'
import type { Locked } from './lock.ts'
import { printDefinition } from './lock-text.ts'

/** Lines around a change that are shown, too. */
const CONTEXT = 2
/** Beyond this many lines times lines, what differs is shown as a whole: one text, then the other. */
const MAX_CELLS = 4_000_000

/** `- ` what was, `+ ` what is, `  ` what stands beside it, `  …` what is left out between. */
export const diffDefinitions = (
  from: Pick<Locked, 'definition'> | undefined,
  to: Pick<Locked, 'definition'> | undefined,
): string[] => shorten(diffLines(linesOf(from), linesOf(to)))

/** Names of the members that differ, for one line: `description, inputSchema`; `text` for instructions. */
export const changedMembers = (from: Pick<Locked, 'definition'>, to: Pick<Locked, 'definition'>): readonly string[] => {
  const membersOf = ({ definition }: Pick<Locked, 'definition'>): Map<string, string> => {
    const bytes = Buffer.from(definition)
    return new Map(membersAt(bytes, 0).map(({ key, start, end }) => [key, bytes.toString('utf8', start, end)]))
  }
  const [before, after] = [membersOf(from), membersOf(to)]
  if (before.size === 0 || after.size === 0) return ['text']
  return [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key))
}

const linesOf = (locked: Pick<Locked, 'definition'> | undefined): string[] =>
  locked === undefined ? [] : printDefinition(locked.definition).split('\n')

const diffLines = (a: readonly string[], b: readonly string[]): string[] => {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const same = (line: string): string => `  ${line}`
  return [
    ...a.slice(0, start).map(same),
    ...diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ]
}

/** By the longest common subsequence of lines. */
const diffMiddle = (a: readonly string[], b: readonly string[]): string[] => {
  const width = b.length + 1
  if (a.length * b.length > MAX_CELLS) return [...a.map((line) => `- ${line}`), ...b.map((line) => `+ ${line}`)]
  const common = new Uint32Array((a.length + 1) * width)
  // Cast: there is a cell for each pair of lines, and for the ends.
  const commonAt = (i: number, j: number): number => common[i * width + j]!
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] = a[i] === b[j] ? commonAt(i + 1, j + 1) + 1 : Math.max(commonAt(i + 1, j), commonAt(i, j + 1))
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(`  ${a[i]}`)
      i++
      j++
    } else if (j === b.length || (i < a.length && commonAt(i + 1, j) >= commonAt(i, j + 1))) lines.push(`- ${a[i++]}`)
    else lines.push(`+ ${b[j++]}`)
  }
  return lines
}

const shorten = (lines: readonly string[]): string[] => {
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((line) => !line.startsWith('  '))
  return lines.flatMap((line, at) => (isNear(at) ? [line] : at > 0 && !isNear(at - 1) ? [] : ['  …']))
}

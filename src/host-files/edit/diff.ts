/** The change of a file, for the person who decides on it: removed and added lines with some lines around them. */
import { compareLines, foldLines } from '../../values/line-diff.ts'

/** Lines shown before and after a change. */
const AROUND = 3
const GAP = '⋮'

/** Lines that begin with two blanks, `- ` or `+ `; between changes that are far apart one line `⋮`. Empty where the texts are equal. */
export const diffLines = (before: string, after: string): readonly string[] => {
  const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
  const lines = foldLines(compareLines(linesOf(before), linesOf(after)), AROUND, GAP)
  return lines.filter((line, at) => line !== GAP || (at > 0 && at < lines.length - 1))
}

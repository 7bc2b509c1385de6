/** The change of a file for a confirmation: removed and added lines, with some unchanged lines before and after. */
import { compareLines, foldLines } from '../../values/line-diff.ts'

/** Number of unchanged lines before and after a change. */
const CONTEXT_LINES = 3
const GAP = '⋮'

/** Returns lines that begin with two spaces, `- ` or `+ `, with a line `⋮` for omitted lines. Empty if the texts are equal. */
export const diffLines = (before: string, after: string): readonly string[] => {
  const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
  const lines = foldLines(compareLines(linesOf(before), linesOf(after)), CONTEXT_LINES, GAP)
  return lines.filter((line, at) => line !== GAP || (at > 0 && at < lines.length - 1))
}

/** Compares two texts line by line, by their longest common subsequence. The output is for people. */

/** Above this product of the two line counts, nothing is matched: all old lines are listed, then all new ones. */
const MAX_CELLS = 4_000_000

/** Returns the lines of both texts. Lines only in `old` begin with `- `, lines only in `now` with `+ `, common ones with two blanks. */
export const compareLines = (old: readonly string[], now: readonly string[]): readonly string[] => {
  let start = 0
  while (start < old.length && old[start] === now[start]) start++
  let end = 0
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const same = (line: string): string => `  ${line}`
  return [
    ...old.slice(0, start).map(same),
    ...compareMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...old.slice(old.length - end).map(same),
  ]
}

/** Replaces each run of unchanged lines that are more than `around` lines away from a change by `gap`. */
export const foldLines = (lines: readonly string[], around: number, gap: string): readonly string[] => {
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - around), at + around + 1).some((line) => !line.startsWith('  '))
  return lines.flatMap((line, at) => (isNear(at) ? [line] : at > 0 && !isNear(at - 1) ? [] : [gap]))
}

const compareMiddle = (old: readonly string[], now: readonly string[]): readonly string[] => {
  if (old.length * now.length > MAX_CELLS) return [...old.map((line) => `- ${line}`), ...now.map((line) => `+ ${line}`)]
  const width = now.length + 1
  const common = new Uint32Array((old.length + 1) * width)
  // Cast: the table has a cell for each pair of lines, and one more row and column for the ends.
  const commonAt = (i: number, j: number): number => common[i * width + j]!
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      common[i * width + j] = old[i] === now[j] ? commonAt(i + 1, j + 1) + 1 : Math.max(commonAt(i + 1, j), commonAt(i, j + 1))
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    // At the end of one text its line is `undefined`, which no line of the other is.
    if (old[i] === now[j]) {
      lines.push(`  ${old[i++]}`)
      j++
    } else if (i < old.length && (j === now.length || commonAt(i + 1, j) >= commonAt(i, j + 1))) lines.push(`- ${old[i++]}`)
    else lines.push(`+ ${now[j++]}`)
  }
  return lines
}

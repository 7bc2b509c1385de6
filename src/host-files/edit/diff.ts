/** The difference of two texts for a person: removed and added lines with some lines around them. */

/** Lines shown before and after a change. */
const AROUND = 3
/** Longer changes are shown as all old lines, then all new ones. */
const MAX_COMPARED = 600

/** Lines that begin with ` `, `-` or `+`; gaps are one line `⋮`. Empty where the texts are equal. */
export const diffLines = (before: string, after: string): readonly string[] => {
  const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
  const [old, now] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const middle = compare(old.slice(start, old.length - end), now.slice(start, now.length - end))
  if (middle.length === 0) return []
  const lead = old.slice(Math.max(0, start - AROUND), start).map((line) => `  ${line}`)
  const tail = old.slice(old.length - end, old.length - end + AROUND).map((line) => `  ${line}`)
  return [...lead, ...folded(middle), ...tail]
}

/** By the longest common subsequence. */
const compare = (old: readonly string[], now: readonly string[]): readonly string[] => {
  if (old.length > MAX_COMPARED || now.length > MAX_COMPARED)
    return [...old.map((line) => `- ${line}`), ...now.map((line) => `+ ${line}`)]
  const width = now.length + 1
  const lengths = new Uint16Array((old.length + 1) * width)
  // Cast: there is a length for each pair of lines, and for the ends.
  const lengthAt = (i: number, j: number): number => lengths[i * width + j]!
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      lengths[i * width + j] = old[i] === now[j] ? lengthAt(i + 1, j + 1) + 1 : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1))
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push(`  ${old[i++]}`)
      j++
    } else if (i < old.length && (j === now.length || lengthAt(i + 1, j) >= lengthAt(i, j + 1))) lines.push(`- ${old[i++]}`)
    else lines.push(`+ ${now[j++]}`)
  }
  return lines
}

/** Long runs of unchanged lines are left out. */
const folded = (lines: readonly string[]): readonly string[] => {
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some((line) => !line.startsWith('  '))
  return lines.flatMap((line, at) => (isNear(at) ? [line] : at > 0 && isNear(at - 1) ? ['⋮'] : []))
}

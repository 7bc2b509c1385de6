/** The known word that a mistyped one probably stands for. */
import { ownValue } from '../../values/own-value.ts'

/** Keys of other programs' configurations, with our keys of the same meaning. */
const FOREIGN_KEYS: Readonly<Record<string, string>> = {
  type: 'transport',
  serverUrl: 'url',
  httpUrl: 'url',
  uri: 'url',
  endpoint: 'url',
  cmd: 'command',
  environment: 'env',
  disabled: 'enabled',
  mcpServers: 'servers',
  port: 'bind',
  host: 'bind',
}

/** A remedy for an unknown word: the known one it resembles, else all of them. */
export const suggest = (word: string, known: readonly string[], title = 'known'): string => {
  const key = nearestKey(word, known)
  return key === undefined ? `${title}: ${known.join(', ')}` : `did you mean "${key}"?`
}

/** The known word within one edit, or two where `word` has five characters or more. Two swapped neighbours are one edit. */
export const nearestKey = (word: string, known: readonly string[]): string | undefined => {
  const ours = ownValue(FOREIGN_KEYS, word)
  if (ours !== undefined && known.includes(ours)) return ours
  const flat = (text: string) => text.toLowerCase().replaceAll(/[-_ ]/g, '')
  const allowed = word.length < 5 ? 1 : 2
  const near = known
    .map((key) => ({ key, distance: word.length > 64 ? Infinity : editDistance(flat(word), flat(key)) }))
    .filter(({ distance }) => distance <= allowed)
  return near.sort((a, b) => a.distance - b.distance)[0]?.key
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
const editDistance = (a: string, b: string): number => {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  // Cast: each row has a number for each character of `b`, and one more.
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? beforeLast[j - 2]! + 1 : Infinity
      row.push(Math.min(last[j]! + 1, row[j - 1]! + 1, change, swap))
    }
    beforeLast = last
    last = row
  }
  return last.at(-1) ?? 0
}

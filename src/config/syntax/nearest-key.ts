/** What a person probably meant by a word that is not known here. */

/** Words of other programs' configurations for what ours calls otherwise. */
const ELSEWHERE: Readonly<Record<string, string>> = {
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

/** The known word that is one slip (two in longer words) away; a swap of neighbours is one slip. */
export const nearestKey = (word: string, known: readonly string[]): string | undefined => {
  const elsewhere = Object.hasOwn(ELSEWHERE, word) ? ELSEWHERE[word] : undefined
  if (elsewhere !== undefined && known.includes(elsewhere)) return elsewhere
  const flat = (text: string) => text.toLowerCase().replaceAll(/[-_ ]/g, '')
  const allowed = word.length < 5 ? 1 : 2
  const near = known
    .map((key) => ({ key, slips: word.length > 64 ? Infinity : slips(flat(word), flat(key)) }))
    .filter(({ slips }) => slips <= allowed)
  return near.sort((a, b) => a.slips - b.slips)[0]?.key
}

const slips = (a: string, b: string): number => {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  // Cast: each row has a number for each character of `b`, and one more.
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? beforeLast[j - 2]! + 1 : Infinity
      row.push(Math.min(last[j]! + 1, row[j - 1]! + 1, change, swap))
    }
    beforeLast = last
    last = row
  }
  return last.at(-1) ?? 0
}

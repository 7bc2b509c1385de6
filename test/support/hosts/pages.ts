/** Follows the cursors of a list. */

type Page<Key extends string, Entry> = { nextCursor?: string | undefined } & Record<Key, Entry[]>

/** Every entry under `key`, from every page in order. A cursor seen before is an error, not an endless walk. */
export const everyPage = async <Key extends string, Entry>(
  fetchPage: (cursor: string | undefined) => Promise<Page<Key, Entry>>,
  key: Key,
): Promise<Entry[]> => {
  const entries: Entry[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const page: Page<Key, Entry> = await fetchPage(cursor)
    entries.push(...page[key])
    cursor = page.nextCursor
    if (cursor !== undefined && seen.has(cursor)) throw new Error(`cursor ${cursor} came twice while listing ${key}`)
    if (cursor !== undefined) seen.add(cursor)
  } while (cursor !== undefined)
  return entries
}

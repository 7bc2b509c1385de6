/** What every test server answers to cursors and completion requests about its offers. */

/** How many entries a page of any list holds when a server is asked for pages. */
const PAGE_SIZE = 2
const completions: Record<string, string[]> = {
  'test_prompt_with_arguments arg1': ['paris', 'park', 'party', 'quay'],
  'test://note/{topic} topic': ['apples', 'apricots', 'bread'],
}

/** The known values of one argument that begin with `value`; none for an argument without completion. */
export const completeArgument = (owner: string, argument: string, value: string): string[] =>
  (completions[`${owner} ${argument}`] ?? []).filter((known) => known.startsWith(value))

/** One page of a list: the entries from `cursor` on, and the cursor of the next page if there is one. */
export const pageOf = <Entry>(entries: Entry[], cursor: string | undefined): { entries: Entry[]; nextCursor?: string } => {
  const from = Number(cursor ?? 0)
  const to = from + PAGE_SIZE
  return { entries: entries.slice(from, to), ...(to < entries.length ? { nextCursor: String(to) } : {}) }
}

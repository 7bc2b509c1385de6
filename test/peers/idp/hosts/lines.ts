/** What a host prints, one JSON object per line: where a person must go, and in the end what it saw. */
export type Line =
  | { readonly open: string }
  | { readonly tools: readonly string[]; readonly text: string; readonly renewed?: boolean }
  | { readonly failed: string }

export const print = (line: Line): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
export const readLine = (text: string): Line => JSON.parse(text) as Line

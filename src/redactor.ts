/** Keeps the secrets of the configuration out of every text that leaves by log, status or error: by value, at one boundary (T-14). */

const HIDDEN = '***'

export class Redactor {
  readonly #secrets = new Set<string>()
  #pattern: RegExp | undefined

  constructor(secrets: readonly string[] = []) {
    this.learn(secrets)
  }

  /** Further secrets, from a reload; those known before stay secret. */
  learn(secrets: readonly string[]): void {
    for (const secret of secrets) for (const form of formsOf(secret)) this.#secrets.add(form)
    const longestFirst = [...this.#secrets].sort((a, b) => b.length - a.length)
    this.#pattern = longestFirst.length === 0 ? undefined : new RegExp(longestFirst.map(escaped).join('|'), 'g')
  }

  /** The text with every secret replaced, whether it stands there as it is, in JSON, or in a URL. */
  readonly hide = (text: string): string => (this.#pattern === undefined ? text : text.replace(this.#pattern, HIDDEN))

  /** The same for every text of a value that is plain data. */
  hideIn<T>(value: T): T {
    return this.#pattern === undefined ? value : (JSON.parse(this.hide(JSON.stringify(value))) as T)
  }
}

const formsOf = (secret: string): readonly string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret.toWellFormed()),
  Buffer.from(secret).toString('base64'),
]

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')

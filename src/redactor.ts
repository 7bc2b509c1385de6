/** Keeps the secrets of the configuration, and tokens that come while we run, out of every text that leaves by log, status or error: by value, at one boundary (T-14). */

const HIDDEN = '***'
/** A piece of a token: shorter ones give nothing away, and are found in ordinary texts. */
const WORD = /[\w~-]{12,}/g

export class Redactor {
  readonly #secrets = new Set<string>()
  #pattern: RegExp | undefined
  /** Pieces of live tokens, and by how many namings. */
  readonly #live = new Map<string, number>()
  /** By holder: what it named last, and before. */
  readonly #held = new WeakMap<object, readonly [readonly string[], readonly string[]]>()

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
  readonly hide = (text: string): string => {
    const hidden = this.#pattern === undefined ? text : text.replace(this.#pattern, HIDDEN)
    return this.#live.size === 0 ? hidden : hidden.replace(WORD, (word) => (this.#live.has(word) ? HIDDEN : word))
  }

  /**
   * Tokens that come and go: those of one holder, in place of what it named before the last time, so that a token is hidden for as
   * long as anything may still speak of it. They are found word by word, however many there are.
   */
  readonly hold = (holder: object, tokens: readonly string[]): void => {
    const words = tokens.flatMap((token) => formsOf(token).flatMap((form) => form.match(WORD) ?? []))
    const [last = [], before = []] = this.#held.get(holder) ?? []
    this.#held.set(holder, [words, last])
    for (const word of words) this.#live.set(word, (this.#live.get(word) ?? 0) + 1)
    for (const word of before) {
      const count = (this.#live.get(word) ?? 1) - 1
      if (count === 0) this.#live.delete(word)
      else this.#live.set(word, count)
    }
  }

  /** The same for every text of a value that is plain data. */
  hideIn<T>(value: T): T {
    return this.#pattern === undefined && this.#live.size === 0 ? value : (JSON.parse(this.hide(JSON.stringify(value))) as T)
  }
}

const formsOf = (secret: string): readonly string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret.toWellFormed()),
  Buffer.from(secret).toString('base64'),
]

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')

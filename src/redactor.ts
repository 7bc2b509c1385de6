/**
 * Hides the secrets of the configuration, and tokens that are received at run time, in every text that leaves by log, status, audit or
 * error (T-14). It finds a secret as it is, one line of it, in JSON, in URLs and forms with the escapes of any library, and in base64 at any
 * offset, such as in a `Basic` header.
 */
import { isList } from './values/json-object.ts'
import { unescape } from './values/unescape.ts'

/** In place of a secret. */
export const HIDDEN = '***'
/** Shorter lines of a secret, and shorter pieces of base64, would match by chance. */
const SHORTEST_LINE = 8
const SHORTEST_CORE = 6
/** A piece of a live token: shorter pieces reveal nothing, and occur in ordinary texts. */
const WORD = /[\w~-]{12,}/g
/** A text that may be base64; whether it contains that of twelve characters of ASCII: their upper bits decide three of each four digits. */
const IN_BASE64_RUN = /[\w+/-]{16,}={0,2}/g
const ASCII_IN_BASE64 = /(?:[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][\w+/-]){3}/
/** What follows `%` or `\\` in the escapes of URLs and texts: these letters may not belong to the word behind them. */
const ESCAPED: Readonly<Record<string, RegExp>> = { '%': /^(?:25)*[\da-f]{2}/i, '\\': /^(?:u[\da-f]{4}|x[\da-f]{2}|[bfnrt])/i }

export class Redactor {
  readonly #texts = new Set<string>()
  readonly #cores = new Set<string>()
  readonly #fragments = new Fragments()
  /** Pieces of live tokens, and by how many calls of `hold` each is held. */
  readonly #live = new Map<string, number>()
  /** By holder: the pieces of its latest tokens, and of the ones before. */
  readonly #held = new WeakMap<object, readonly [readonly string[], readonly string[]]>()
  /** Pieces that were replaced twice, and when: the oldest first. */
  readonly #replaced: { readonly words: readonly string[]; readonly atMs: number }[] = []
  readonly #nowMs: () => number
  /** Built when next needed: many secrets are learned at a time. */
  #patterns: Patterns | undefined

  constructor(secrets: readonly string[] = [], nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
    this.learn(secrets)
  }

  /** How long tokens stay hidden after they were replaced twice: captured messages may contain them until then. */
  retainMs = 0

  /** Adds secrets, such as those of a reload; earlier ones stay secret. */
  learn(secrets: readonly string[]): void {
    for (const secret of secrets) {
      if (secret === '') continue
      const cores = coresOf(secret)
      for (const core of cores) this.#cores.add(core)
      for (const text of cores) this.#fragments.add(text)
      for (const text of [secret, ...linesOf(secret)]) {
        this.#texts.add(text)
        this.#fragments.add(fragmentOf(text))
      }
    }
    this.#patterns = undefined
  }

  /** The text with every secret replaced. JSON may become invalid: see `hideJson`. */
  readonly hide = (text: string): string => {
    const hidden = this.#hideKnown(text)
    if (this.#live.size === 0) return hidden
    const decoded = hidden.replace(IN_BASE64_RUN, (run) => (this.#hasLiveInside(run) ? HIDDEN : run))
    return decoded.replace(WORD, (word, at: number) => this.#hideLive(word, decoded[at - 1] ?? ''))
  }

  /** Whether a run of base64 contains a token. It may begin after other characters, such as those of a path. */
  #hasLiveInside(run: string): boolean {
    if (!ASCII_IN_BASE64.test(run)) return false
    return [0, 1, 2, 3].some((from) =>
      Buffer.from(run.slice(from), 'base64')
        .toString('latin1')
        .match(WORD)
        ?.some((word) => this.#live.has(word)),
    )
  }

  /** `before`: the character before the word. If an escape may begin there, the word is looked up with and without its letters. */
  #hideLive(word: string, before: string): string {
    if (this.#live.has(word)) return HIDDEN
    const [letters = ''] = ESCAPED[before]?.exec(word) ?? []
    return letters !== '' && this.#live.has(word.slice(letters.length)) ? letters + HIDDEN : word
  }

  #hideKnown(text: string): string {
    if (this.#texts.size === 0 || !this.#fragments.mayBeIn(text)) return text
    const { texts, escaped, cores } = (this.#patterns ??= this.#build())
    return withoutRuns(withoutEscaped(text.replace(texts, HIDDEN), escaped), cores)
  }

  #build(): Patterns {
    const escaped = [...this.#texts].flatMap((text) =>
      [text, JSON.stringify(text).slice(1, -1)].map((form) => unescape(form).text),
    )
    const visible = escaped.filter((text) => text.trim() !== '')
    return { texts: anyOf(this.#texts), escaped: anyOf(new Set(visible)), cores: anyOf(this.#cores) }
  }

  /**
   * Replaces the tokens of one holder. Its previous tokens stay hidden, too, because texts in flight may contain them. Tokens are looked up
   * word by word, so their number does not matter. Without tokens the holder has ended.
   */
  readonly hold = (holder: object, tokens: readonly string[]): void => {
    const words = tokens.flatMap(formsOf).flatMap((form) => form.match(WORD) ?? [])
    const [last = [], before = []] = this.#held.get(holder) ?? []
    this.#held.set(holder, [words, last])
    for (const word of words) this.#live.set(word, (this.#live.get(word) ?? 0) + 1)
    const nowMs = this.#nowMs()
    this.#replaced.push({ words: before, atMs: nowMs })
    if (tokens.length === 0) {
      this.#replaced.push({ words: last, atMs: nowMs })
      this.#held.delete(holder)
    }
    for (let oldest = this.#replaced[0]; oldest !== undefined; oldest = this.#replaced[0]) {
      if (nowMs - oldest.atMs < this.retainMs) break
      this.#release(oldest.words)
      this.#replaced.shift()
    }
  }

  #release(words: readonly string[]): void {
    for (const word of words) {
      const count = (this.#live.get(word) ?? 1) - 1
      if (count === 0) this.#live.delete(word)
      else this.#live.set(word, count)
    }
  }

  /** The same for JSON text, which stays valid, and byte for byte the same if it contains no secret. */
  readonly hideJson = (json: string): string => {
    if (this.#isIdle || (!json.includes('\\') && this.hide(json) === json)) return json
    try {
      const value: unknown = JSON.parse(json)
      const hidden = this.hideIn(value)
      return hidden === value ? json : JSON.stringify(hidden)
    } catch {
      return this.hide(json)
    }
  }

  /** The same for every text in plain data; returns the same value if it contains no secret. */
  hideIn<T>(value: T): T {
    // Cast: texts become texts, other values stay the same.
    return this.#isIdle ? value : (this.#hideIn(value) as T)
  }

  get #isIdle(): boolean {
    return this.#texts.size === 0 && this.#live.size === 0
  }

  #hideIn(value: unknown): unknown {
    if (typeof value === 'string') return this.hide(value)
    if (typeof value === 'number') return this.#texts.has(String(value)) ? HIDDEN : value
    if (typeof value !== 'object' || value === null) return value
    if (isList(value)) {
      const items = value.map((item) => this.#hideIn(item))
      return items.every((item, at) => item === value[at]) ? value : items
    }
    const before = Object.entries(value)
    const after = before.map(([key, child]): [string, unknown] => [this.#hideKey(key), this.#hideIn(child)])
    const isSame = after.every(([key, child], at) => key === before[at]?.[0] && child === before[at]?.[1])
    return isSame ? value : Object.fromEntries(after)
  }

  /** Keys that are plain words are not hidden: they may be member names, even if a secret has the same text. */
  #hideKey(key: string): string {
    return /^\w*$/.test(key) && !/\d/.test(key) ? key : this.hide(key)
  }
}

interface Patterns {
  readonly texts: RegExp
  /** Texts without escapes, for texts without escapes. */
  readonly escaped: RegExp
  readonly cores: RegExp
}

/** A filter of four characters of every secret, which most texts pass after one scan. */
class Fragments {
  readonly #bits = new Uint32Array(1 << 15)
  #hasShort = false

  add(text: string): void {
    if (text.length < 4) this.#hasShort = true
    let key = 0
    for (let at = 0; at < 4; at++) key = shiftedIn(key, text.charCodeAt(at))
    const slot = slotOf(key)
    // Cast: a slot has 20 bits, and there is a bit for each.
    this.#bits[slot >>> 5]! |= 1 << (slot & 31)
  }

  /** False only if the text contains none of them. Cast: there is a bit for each slot. */
  mayBeIn(text: string): boolean {
    if (this.#hasShort) return true
    let key = 0
    for (let at = 0; at < text.length; at++) {
      key = shiftedIn(key, text.charCodeAt(at))
      const slot = slotOf(key)
      if (at >= 3 && (this.#bits[slot >>> 5]! & (1 << (slot & 31))) !== 0) return true
    }
    return false
  }
}

/** Four characters that no library escapes: the end of the longest word, since many secrets begin alike. Empty: there are none. */
const fragmentOf = (text: string): string => {
  const words = text.match(/[\w.-]{4,}/g) ?? []
  return words.reduce((longest, word) => (word.length > longest.length ? word : longest), '').slice(-4)
}

const shiftedIn = (key: number, code: number): number => (key >>> 8) | ((code & 0xff) << 24)
const slotOf = (key: number): number => Math.imul(key, 0x9e3779b1) >>> 12

const linesOf = (secret: string): readonly string[] =>
  secret.includes('\n') ? secret.split(/\r?\n/).filter((line) => line.length >= SHORTEST_LINE) : []

/** The forms in which a token may occur in another text. */
const formsOf = (text: string): readonly string[] => {
  const formed = text.toWellFormed()
  const json = JSON.stringify(text).slice(1, -1)
  const escaped = [encodeURIComponent(formed), encodeURI(formed), new URLSearchParams([['', formed]]).toString().slice(1)]
  return [text, json, JSON.stringify(json).slice(1, -1), ...escaped, ...escaped.map(lowerEscapes)]
}

const lowerEscapes = (text: string): string => text.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase())

/** The part of base64 that is independent of the bytes before and after the secret, for each of the three alignments. */
const coresOf = (secret: string): readonly string[] => {
  const bytes = Buffer.from(secret)
  const cores = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    const isCut = (before + bytes.length) % 3 !== 0
    return text.slice(before === 0 ? 0 : before + 1, isCut ? -1 : undefined)
  })
  const long = cores.filter((core) => core.length >= SHORTEST_CORE)
  return [...long, ...long.map((core) => core.replaceAll('-', '+').replaceAll('_', '/'))]
}

/** Longest first, so that a secret that begins with another is hidden as a whole. */
const anyOf = (texts: ReadonlySet<string>): RegExp =>
  new RegExp(
    [...texts]
      .sort((a, b) => b.length - a.length)
      .map(literal)
      .join('|') || '(?!)',
    'g',
  )

const literal = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/** Replaces what is one of `secrets` without its escapes. The backslashes in front belong to an escape. */
const withoutEscaped = (text: string, secrets: RegExp): string => {
  if (!/[\\%+]/.test(text)) return text
  const { text: plain, ends } = unescape(text)
  let shown = ''
  let at = 0
  for (const { index, 0: found } of plain.matchAll(secrets)) {
    shown += text.slice(at, ends[index - 1] ?? 0) + HIDDEN
    at = ends[index + found.length - 1] ?? text.length
  }
  return at === 0 ? text : shown + text.slice(at)
}

const IN_BASE64 = /[A-Za-z0-9+/_-]/

/** Replaces every run of base64 characters with a core: the rest of the run contains the edges of the secret. Scans each character once. */
const withoutRuns = (text: string, cores: RegExp): string => {
  let shown = ''
  let at = 0
  for (const { index, 0: core } of text.matchAll(cores)) {
    if (index < at) continue
    let start = index
    while (start > at && IN_BASE64.test(text.charAt(start - 1))) start--
    let end = index + core.length
    while (IN_BASE64.test(text.charAt(end))) end++
    while (text.charAt(end) === '=') end++
    shown += text.slice(at, start) + HIDDEN
    at = end
  }
  return at === 0 ? text : shown + text.slice(at)
}

/**
 * JSON as a tree in which every number and string keeps its spelling: `1.0` and 64-bit integers are shown as they were sent. The
 * result is `undefined` if the text is not JSON. Depth is bounded, as the text is untrusted.
 */
import { attempt } from './attempt.ts'
import { parseJson } from './json-object.ts'

export type JsonNode =
  | { readonly kind: 'literal'; readonly raw: string }
  | { readonly kind: 'object'; readonly members: readonly (readonly [key: string, value: JsonNode])[] }
  | { readonly kind: 'array'; readonly items: readonly JsonNode[] }

const MAX_DEPTH = 100
export const readJson = (text: string): JsonNode | undefined => {
  const tokens = new Tokens(text)
  try {
    const node = readNode(tokens, 0)
    return tokens.isAtEnd ? node : undefined
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}

class Malformed extends Error {}

const BLANK = ' \t\n\r'
const SIGNS = '{}[]:,'

/** Reads one token after the other, each character once. */
class Tokens {
  readonly #text: string
  #at = 0
  #next: string | undefined

  constructor(text: string) {
    this.#text = text
    this.#next = this.#read()
  }

  get next(): string | undefined {
    return this.#next
  }

  get isAtEnd(): boolean {
    return this.#next === undefined
  }

  take(wanted?: string): string {
    const token = this.#next
    if (token === undefined || (wanted !== undefined && token !== wanted)) throw new Malformed()
    this.#next = this.#read()
    return token
  }

  #read(): string | undefined {
    const text = this.#text
    while (this.#at < text.length && BLANK.includes(text.charAt(this.#at))) this.#at++
    const from = this.#at
    const first = text.charAt(from)
    if (first === '') return undefined
    this.#at = SIGNS.includes(first) ? from + 1 : first === '"' ? this.#endOfString(from) : this.#endOfWord(from)
    return text.slice(from, this.#at)
  }

  #endOfString(from: number): number {
    for (let at = from + 1; at < this.#text.length; at++) {
      const character = this.#text.charAt(at)
      if (character === '"') return at + 1
      if (character === '\\') at++
    }
    throw new Malformed()
  }

  #endOfWord(from: number): number {
    let at = from
    while (at < this.#text.length && !`${BLANK}${SIGNS}"`.includes(this.#text.charAt(at))) at++
    return at
  }
}

const readNode = (tokens: Tokens, depth: number): JsonNode => {
  if (depth > MAX_DEPTH) throw new Malformed()
  const token = tokens.take()
  if (token === '{') return readObject(tokens, depth)
  if (token === '[') return readArray(tokens, depth)
  return { kind: 'literal', raw: literal(token) }
}

/** A string, number or word of JSON, as it is spelled. */
const literal = (token: string): string => {
  if (parseJson(token) === undefined) throw new Malformed()
  return token
}

const readObject = (tokens: Tokens, depth: number): JsonNode => {
  const members: (readonly [string, JsonNode])[] = []
  if (tokens.next === '}') {
    tokens.take()
    return { kind: 'object', members }
  }
  for (;;) {
    const key = tokens.take()
    if (!key.startsWith('"')) throw new Malformed()
    tokens.take(':')
    members.push([unquote(literal(key)), readNode(tokens, depth + 1)])
    if (tokens.take() === '}') return { kind: 'object', members }
  }
}

const readArray = (tokens: Tokens, depth: number): JsonNode => {
  const items: JsonNode[] = []
  if (tokens.next === ']') {
    tokens.take()
    return { kind: 'array', items }
  }
  for (;;) {
    items.push(readNode(tokens, depth + 1))
    if (tokens.take() === ']') return { kind: 'array', items }
  }
}

/** The text of a JSON string; the spelling of any other value. */
export const unquote = (raw: string): string => attempt(() => String(JSON.parse(raw))) ?? raw

/** Compact JSON text. */
export const writeJson = (node: JsonNode): string => {
  if (node.kind === 'literal') return node.raw
  if (node.kind === 'array') return `[${node.items.map(writeJson).join(',')}]`
  return `{${node.members.map(([key, value]) => `${JSON.stringify(key)}:${writeJson(value)}`).join(',')}}`
}

/** The member of an object; `undefined` for any other value. */
export const memberIn = (node: JsonNode | undefined, key: string): JsonNode | undefined =>
  node?.kind === 'object' ? node.members.find(([name]) => name === key)?.[1] : undefined

/** Longer texts are shown unchanged: a tree of them is too expensive. */
export const MOST_IN_TREE = 1_000_000

/** JSON text with an indent of two spaces, spellings kept; a text that is not JSON, or too long for a tree, is unchanged. */
export const indentJson = (text: string): string => {
  const node = text.length > MOST_IN_TREE ? undefined : readJson(text)
  return node === undefined
    ? text
    : linesOf(node)
        .map(({ depth, text: line }) => '  '.repeat(depth) + line)
        .join('\n')
}

/** One line of a tree. */
export interface JsonLine {
  readonly depth: number
  readonly text: string
  /** Path of the value that the line begins or belongs to. */
  readonly path: readonly (string | number)[]
}

/** The tree line by line; `key`: text before the value; `after`: text after it. */
export const linesOf = (node: JsonNode, path: readonly (string | number)[] = [], depth = 0, key = '', after = ''): JsonLine[] => {
  if (node.kind === 'literal') return [{ depth, text: `${key}${node.raw}${after}`, path }]
  const [open, close] = node.kind === 'object' ? '{}' : '[]'
  const children = childrenOf(node)
  if (children.length === 0) return [{ depth, text: `${key}${open}${close}${after}`, path }]
  return [
    { depth, text: `${key}${open}`, path },
    ...children.flatMap(([name, child], at) =>
      linesOf(child, [...path, name], depth + 1, keyOf(name), at === children.length - 1 ? '' : ','),
    ),
    { depth, text: `${close}${after}`, path },
  ]
}

export const childrenOf = (node: JsonNode): readonly (readonly [name: string | number, child: JsonNode])[] =>
  node.kind === 'object' ? node.members : node.kind === 'array' ? node.items.map((item, at) => [at, item] as const) : []

export const keyOf = (name: string | number): string => (typeof name === 'string' ? `${JSON.stringify(name)}: ` : '')

/**
 * JSON read without loss: every node keeps the source text it was read from, keys keep their order, repeated keys stay. Written
 * apart from `src/`, so that one mistake cannot hide another.
 */

export interface Member {
  /** Decoded. */
  readonly key: string
  readonly value: Tree
}

export interface Tree {
  readonly kind: 'object' | 'array' | 'string' | 'scalar'
  /** The source, without surrounding white space. */
  readonly text: string
  readonly members: readonly Member[]
  readonly items: readonly Tree[]
}

/** Throws `SyntaxError` where the text is not one JSON value. */
export const readTree = (text: string): Tree => {
  JSON.parse(text)
  let at = 0
  const skip = (): void => {
    while (' \t\r\n'.includes(text[at] ?? 'x')) at++
  }
  const string = (): string => {
    const start = at++
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
    at++
    return text.slice(start, at)
  }
  const read = (): Tree => {
    skip()
    const start = at
    const members: Member[] = []
    const items: Tree[] = []
    const first = text[at]
    if (first === '"') return { kind: 'string', text: string(), members, items }
    if (first !== '{' && first !== '[') {
      while (at < text.length && !' \t\r\n,]}'.includes(text[at] ?? ',')) at++
      return { kind: 'scalar', text: text.slice(start, at), members, items }
    }
    at++
    skip()
    while (text[at] !== '}' && text[at] !== ']') {
      if (first === '{') {
        const key = JSON.parse(string()) as string
        skip()
        at++
        members.push({ key, value: read() })
      } else items.push(read())
      skip()
      if (text[at] === ',') at++
      skip()
    }
    at++
    return { kind: first === '{' ? 'object' : 'array', text: text.slice(start, at), members, items }
  }
  return read()
}

/** The last member of that name, as every common parser takes it. */
export const member = (tree: Tree | undefined, key: string): Tree | undefined =>
  tree?.members.findLast((candidate) => candidate.key === key)?.value

/** The decoded value of a node: for strings and numbers whose spelling does not matter. */
export const valueOf = (tree: Tree | undefined): unknown => (tree === undefined ? undefined : JSON.parse(tree.text))

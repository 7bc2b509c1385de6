/** One text, YAML or JSON with comments, to a tree with places. Every syntax error of the file is reported, not only the first. */
import { extname } from 'node:path'
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import type { Document, Node, YAMLError } from 'yaml'
import { asError } from '../../values/as-error.ts'
import { blankComments } from './json-comments.ts'
import type { Problem } from './problems.ts'
import { childPath, treeOf } from './tree.ts'
import type { Scalar, Tree } from './tree.ts'

const MAX_DEPTH = 64
const MAX_NODES = 100_000

export interface ParsedText {
  readonly tree: Tree
  readonly problems: readonly Problem[]
  /** It has no content but comments. */
  readonly isEmpty: boolean
}

/** Whether the name of the file is that of a YAML or JSON file. */
export const hasYamlOrJsonName = (file: string): boolean =>
  ['.yaml', '.yml', '.json', '.jsonc', '.json5'].includes(extname(file).toLowerCase())

/** `name`: of the file, for places. A file without content is an empty mapping. */
export const parseText = (text: string, name: string): ParsedText => {
  const lines = new LineCounter()
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${name}:${line}:${col}`
  }
  const empty = treeOf({}, `${name}:1:1`)
  try {
    const isInJson = isJson(text, name)
    const document = parseDocument(isInJson ? blankComments(text) : text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: false,
      // `silent` would drop all documents but the first without an error.
      logLevel: 'error',
    })
    const problems: Problem[] = [...document.errors, ...document.warnings].map((error) => ({
      place: place(error.pos[0]),
      path: '',
      message: syntaxMessage(error),
      remedy: REMEDIES[error.code] ?? 'correct the syntax here',
    }))
    problems.push(...findLostAliases(document, place))
    const isEmpty = problems.length === 0 && document.contents === null
    if (problems.length > 0 || isEmpty) return { tree: empty, problems, isEmpty }
    return { tree: convert(document, place, problems, isInJson) ?? empty, problems, isEmpty }
  } catch (error) {
    // The parser recurses: a text of ten thousand brackets overflows its stack.
    const message = `cannot be read as YAML or JSON (${asError(error).message})`
    return { tree: empty, problems: [{ place: `${name}:1:1`, path: '', message, remedy: 'nest less deeply' }], isEmpty: false }
  }
}

/** Aliases without an anchor before them. The parser reports only a `*` without a name. */
const findLostAliases = (document: Document, place: (offset: number) => string): readonly Problem[] => {
  const anchors = new Set<string>()
  const lost: Problem[] = []
  visit(document, {
    Value: (_, { anchor }) => void (anchor !== undefined && anchors.add(anchor)),
    Alias: (_, { source, range }) => {
      if (source === '' || anchors.has(source)) return
      const message = `there is no anchor &${source} for *${source}`
      lost.push({ place: place(range?.[0] ?? 0), path: '', message, remedy: QUOTE_STAR })
    },
  })
  return lost
}

const QUOTE_STAR = 'write a text that begins with * in quotes'

const REMEDIES: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BAD_ALIAS: QUOTE_STAR,
  BAD_DQ_ESCAPE: 'write it in single quotes, where \\ is an ordinary character',
  BAD_SCALAR_START: 'write it in quotes',
  TAB_AS_INDENT: 'indent with spaces',
  MULTIPLE_DOCS: 'remove the line "---", or write two files and name one under include',
}

/** The message of the YAML parser in one line. */
export const syntaxMessage = ({ code, message }: YAMLError): string =>
  code === 'MULTIPLE_DOCS' ? 'a second document begins here, and a file has one' : message.replace(/\s+/g, ' ')

const isJson = (text: string, name: string): boolean => {
  const extension = extname(name).toLowerCase()
  return extension !== '.yaml' && extension !== '.yml' && (extension.startsWith('.json') || /^\s*(\{|\/\/|\/\*)/.test(text))
}

/**
 * Converts the parsed nodes. Of duplicate keys the last one counts in JSON, as in hosts, else the first. Aliases are followed, so depth and
 * number are limited here. `undefined`: over a limit, which was reported.
 */
const convert = (
  document: Document,
  place: (offset: number) => string,
  problems: Problem[],
  isInJson: boolean,
): Tree | undefined => {
  let nodes = 0
  const build = (node: Node | null, path: string, at: string, depth: number): Tree => {
    nodes += 1
    const nothing: Tree = { kind: 'scalar', value: null, source: '', path, place: at }
    if (depth > MAX_DEPTH || nodes > MAX_NODES) {
      const message = depth > MAX_DEPTH ? `nested deeper than ${MAX_DEPTH} levels` : `more than ${MAX_NODES} values`
      problems.push({ place: at, path: '', message, remedy: 'simplify the file; an alias may refer to itself' })
      nodes = -Infinity
      return nothing
    }
    if (node === null || nodes < 0) return nothing
    if (isAlias(node)) return build(node.resolve(document) ?? null, path, at, depth + 1)
    if (isSeq<Node | null>(node)) {
      const items = node.items.map((item, index) => {
        const start = item?.range?.[0]
        return build(item, `${path}[${index}]`, start === undefined ? at : place(start), depth + 1)
      })
      return { kind: 'list', items, path, place: at }
    }
    if (isMap<Node | null, Node | null>(node)) {
      const entries = new Map<string, Tree>()
      for (const { key, value } of node.items) {
        const start = place(key?.range?.[0] ?? node.range?.[0] ?? 0)
        const name = isScalar(key) ? String(key.source ?? key.value) : undefined
        const first = name === undefined ? undefined : entries.get(name)
        if (name === undefined) problems.push({ place: start, path, message: 'a key must be a plain text', remedy: '' })
        if (name !== undefined && first) {
          const message = `duplicate key ${JSON.stringify(name)}, first written at ${first.place}`
          const duplicate = { place: start, path: childPath(path, name), message, remedy: 'keep one of them' }
          problems.push(isInJson ? { ...duplicate, isDuplicate: true } : duplicate)
        }
        if (name !== undefined && (first === undefined || isInJson))
          entries.set(name, build(value, childPath(path, name), start, depth + 1))
      }
      return { kind: 'map', entries, path, place: at }
    }
    if (!isScalar<Scalar | bigint | object | undefined>(node)) return nothing
    const { value } = node
    if (typeof value === 'object' && value !== null) {
      problems.push({
        place: at,
        path,
        message: `${node.tag ?? 'this'} is not a value of a configuration`,
        remedy: 'write a text',
      })
      return nothing
    }
    const scalar = typeof value === 'bigint' ? String(value) : (value ?? null)
    return { kind: 'scalar', value: scalar, source: node.source ?? String(scalar ?? ''), path, place: at }
  }
  const tree = build(document.contents, '', place(document.contents?.range?.[0] ?? 0), 0)
  return nodes < 0 ? undefined : tree
}

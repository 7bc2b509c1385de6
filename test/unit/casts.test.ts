/**
 * `as` and `!` tell the compiler what it cannot see, and are not checked at run time. Each one in `src` has its reason beside it, in a
 * comment that begins with `Cast:` (for `!` also at the head of the file); their number does not grow. `as const` and `satisfies` are checked, and do not count.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAst } from 'rolldown/parseAst'
import { describe, expect, test } from 'vitest'

/** Lower it when one goes. Before another one is added: a guard, `satisfies`, a generic signature, a type of zod. */
const MOST_CASTS = 70
const MOST_ASSERTIONS = 91

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}
interface Found {
  readonly kind: 'cast' | 'assertion'
  readonly place: string
  readonly hasReason: boolean
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)

const kindOf = (node: Node): Found['kind'] | undefined => {
  if (node.type === 'TSNonNullExpression') return 'assertion'
  if (node.type !== 'TSAsExpression' && node.type !== 'TSTypeAssertion') return undefined
  const { typeName } = node['typeAnnotation'] as { typeName?: { name?: string } }
  return typeName?.name === 'const' ? undefined : 'cast'
}

/** What a comment may stand above: a statement, a member, a function; not a class or a file. */
const HOLDERS = /Statement$|Declaration$|Definition$|^Property$|^Return/

/** The comment lines directly above the line `at`, and that line itself. */
const around = (lines: readonly string[], at: number): string => {
  let first = at
  while (/^\s*(\/\/|\{?\/?\*)/.test(lines[first - 1] ?? '')) first--
  return lines.slice(first, at + 1).join('\n')
}

const findIn = (file: string): Found[] => {
  const text = readFileSync(join(SRC, file), 'utf8')
  const lines = text.split('\n')
  const lineOf = (offset: number): number => text.slice(0, offset).split('\n').length - 1
  const found: Found[] = []
  const look = (node: Node, holders: readonly Node[]): void => {
    const kind = kindOf(node)
    if (kind !== undefined) {
      const starts = [node, ...holders].map(({ start }) => lineOf(start))
      const isOfFile = kind === 'assertion' && /^(#!.*\n)?\/\*\*[^]*?\bCast:[^]*?\*\//.test(text.slice(0, text.indexOf('*/') + 2))
      const hasReason = isOfFile || [...starts, lineOf(node.end)].some((line) => /\bCast:/.test(around(lines, line)))
      found.push({ kind, place: `${file}:${lineOf(node.start) + 1}  ${lines[lineOf(node.start)]?.trim()}`, hasReason })
    }
    const isHolder = HOLDERS.test(node.type) && node.type !== 'ClassDeclaration'
    for (const child of childrenOf(node)) look(child, isHolder ? [...holders, node] : holders)
  }
  look(parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts', astType: 'ts' }) as unknown as Node, [])
  return found
}

const found = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('wire/kernel/assembly/'))
  .toSorted()
  .flatMap(findIn)

describe('casts of src', () => {
  test('each has a reason', () => {
    expect(found.filter(({ hasReason }) => !hasReason).map(({ place }) => place)).toEqual([])
  })

  test('there are not more of them', () => {
    expect(found.filter(({ kind }) => kind === 'cast').length).toBeLessThanOrEqual(MOST_CASTS)
    expect(found.filter(({ kind }) => kind === 'assertion').length).toBeLessThanOrEqual(MOST_ASSERTIONS)
  })
})

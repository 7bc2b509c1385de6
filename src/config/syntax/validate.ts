/** Validates a tree against a schema: every issue becomes a problem with the place where it was written. */
import type { z } from 'zod'
import { jsonObject, memberOf } from '../../values/json-object.ts'
import type { UnknownObject } from '../../values/json-object.ts'
import { suggest } from './nearest-key.ts'
import type { Problem } from './problems.ts'
import { child, describe, nearest, plain } from './tree.ts'
import type { Tree } from './tree.ts'

/** `undefined`: there are problems, which were added. What a missing variable causes is not reported twice. */
export const validate = <S extends z.ZodType>(schema: S, tree: Tree, problems: Problem[]): z.output<S> | undefined => {
  const result = schema.safeParse(plain(tree))
  if (result.success) return result.data
  for (const issue of result.error.issues) problems.push(...explain(issue, tree, schema))
  return undefined
}

const explain = (issue: z.core.$ZodIssue, tree: Tree, schema: z.ZodType): readonly Problem[] => {
  const node = nearest(tree, issue.path)
  if (node.kind === 'scalar' && node.variables === 'unresolved') return []
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(schema, issue.path)
    return issue.keys.map((key) => unknownKey(key, child(node, key) ?? node, node.path, known))
  }
  const { place, path } = node
  if (issue.code === 'custom') {
    const message = issue.message.startsWith('expected ') ? `${issue.message}, got ${describe(node)}` : issue.message
    return [{ place, path, message, remedy: String(issue.params?.['remedy'] ?? '') }]
  }
  const expected = issue.code === 'invalid_type' ? (issue.expected === 'array' ? 'a list' : 'a mapping') : 'another value'
  return [{ place, path, message: `expected ${expected}, got ${describe(node)}`, remedy: '' }]
}

export const unknownKey = (key: string, node: Tree, container: string, known: readonly string[]): Problem => {
  const message = `unknown key ${JSON.stringify(key)}`
  const remedy =
    key === '<<' ? 'repeat the keys here, or set them for every server under defaults' : suggest(key, known, 'known keys')
  return { place: node.place, path: container, message, remedy }
}

/** The keys of the strict mapping at `path` of a schema. */
const knownKeys = (schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] => {
  let node: unknown = schema
  for (const key of path) node = shapeOf(node)?.[String(key)] ?? valueOf(node)
  return Object.keys(shapeOf(node) ?? {})
}

/** zod's own description of a schema. */
const definitionOf = (schema: unknown): UnknownObject | undefined => jsonObject(memberOf(schema, 'def'))

/** Schema of the values of a record, or of the elements of a list. */
const valueOf = (schema: unknown): unknown => {
  const def = definitionOf(schema)
  return def?.['type'] === 'optional' ? valueOf(def['innerType']) : (def?.['valueType'] ?? def?.['element'])
}

const shapeOf = (schema: unknown): Readonly<Record<string, unknown>> | undefined => {
  const def = definitionOf(schema)
  return def?.['type'] === 'optional' ? shapeOf(def['innerType']) : jsonObject(def?.['shape'])
}

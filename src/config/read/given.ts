/** A configuration that a program passes as an object, in place of a file. */
import { isList } from '../../values/json-object.ts'
import type { Problem } from '../syntax/problems.ts'
import { childPath, treeOf } from '../syntax/tree.ts'
import type { Source } from './source.ts'

/** Its name in places. */
export const GIVEN = 'configuration'

/** `undefined`: it cannot be used, and the reason was added to `problems`. URLs count as texts. */
export const readGiven = (value: unknown, problems: Problem[]): Source | undefined => {
  const found: Problem[] = []
  const tree = treeOf(plainCopy(value, '', [], found), GIVEN)
  if (found.length === 0 && tree.kind !== 'map')
    found.push({ place: GIVEN, path: '', message: 'expected an object', remedy: 'begin with { servers: … }' })
  problems.push(...found)
  return tree.kind === 'map' ? { tree, readable: false, isEmpty: false } : undefined
}

/** `above`: the objects that contain the value. */
const plainCopy = (value: unknown, path: string, above: readonly unknown[], problems: Problem[]): unknown => {
  const refuse = (message: string, remedy: string): undefined => {
    problems.push({ place: GIVEN, path, message, remedy })
    return undefined
  }
  if (value instanceof URL) return value.href
  if (['function', 'symbol', 'bigint'].includes(typeof value))
    return refuse(`expected plain data, got ${valueName(value)}`, 'write a value')
  if (typeof value !== 'object' || value === null) return value
  if (above.includes(value)) return refuse('contains itself', 'write plain data')
  const inside = [...above, value]
  if (isList(value)) return value.map((item, at) => plainCopy(item, `${path}[${at}]`, inside, problems))
  const tag = tagOf(value)
  if (tag !== 'Object') return refuse(`expected plain data, got ${valueName(value)}`, REMEDIES[tag] ?? 'write an object')
  const members = Object.entries(value).map(([key, child]) => [key, plainCopy(child, childPath(path, key), inside, problems)])
  // Cast: from `any`.
  return Object.fromEntries(members) as unknown
}

const REMEDIES: Readonly<Record<string, string>> = { Promise: 'await it', Date: 'write a text' }

/** Also for objects of another realm, such as those of a test environment. */
const tagOf = (value: object): string => Object.prototype.toString.call(value).slice('[object '.length, -1)

/** What a value is, for messages: never its content, which may be a secret. */
export const valueName = (value: unknown): string => {
  if (value === undefined || value === null) return String(value)
  if (isList(value)) return 'a list'
  if (typeof value !== 'object') return `a ${typeof value}`
  const tag = tagOf(value)
  return tag === 'Object' ? 'an object' : `a ${tag}`
}

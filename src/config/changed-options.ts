/** Which options of a server differ between two configurations, under the names they have in files. */
import { isDeepStrictEqual } from 'node:util'
import type { LaunchOptions, ServerOptions } from '../downstream/options.ts'

/** Members whose name in files is not their own in snake_case; `undefined`: no option of its own. */
const NAMES: Readonly<Partial<Record<keyof ServerOptions, string | undefined>>> = {
  place: undefined,
  launch: undefined,
  locked: undefined,
  headers: 'headers or credentials',
  proxies: 'proxy',
  sharing: 'lifecycle.sharing',
  start: 'lifecycle.start',
  spare: 'lifecycle.spare',
  idleStopMs: 'lifecycle.idle_stop',
  uris: 'resources.rewrite',
  hidden: 'hidden_characters',
  onChange: 'lock.on_change',
  curation: 'filter, tools, resources or prompts',
}

const LAUNCH: readonly (keyof LaunchOptions)[] = ['command', 'args', 'env', 'cwd']

/** Names only, since values may be secrets; in the order of the schema. */
export const changedOptions = (before: ServerOptions, after: ServerOptions): readonly string[] => {
  const launch = LAUNCH.filter((name) => !isDeepStrictEqual(before.launch?.[name], after.launch?.[name]))
  const members = (Object.keys(after) as (keyof ServerOptions)[]).filter((name) => !saysTheSame(before[name], after[name]))
  const named = members.map((member) => (Object.hasOwn(NAMES, member) ? NAMES[member] : snakeCase(member)))
  return [...launch, ...new Set(named.filter((name) => name !== undefined))]
}

/** Whether two options are equal, wherever they are written. */
export const saysTheSame = (before: unknown, after: unknown): boolean =>
  isDeepStrictEqual(withoutPlaces(before), withoutPlaces(after))

const withoutPlaces = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof URL) return value.href
  if (Array.isArray(value)) return value.map(withoutPlaces)
  const entries: [unknown, unknown][] = value instanceof Map ? [...(value as Map<unknown, unknown>)] : Object.entries(value)
  return new Map(entries.filter(([name]) => name !== 'place').map(([name, member]) => [name, withoutPlaces(member)]))
}

const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * The configuration as its files say it: each value with the line that it stands on, before variables are replaced. What usually is a
 * secret is not told, whatever stands there.
 */
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { Configuration } from '../../config/options.ts'
import { fileSchema } from '../../config/schema/file-schema.ts'
import { parseText } from '../../config/syntax/document.ts'
import { scalars } from '../../config/syntax/tree.ts'
import type { MapTree, ScalarTree } from '../../config/syntax/tree.ts'
import { recogniseHostFile } from '../../config/read/host-file.ts'

export interface Setting {
  /** `servers.github.args[1]`, as in its file. */
  readonly path: string
  /** As it is written; `***`: it may be a secret. */
  readonly value: string
  /** `/srv/trunkline.yaml:31:7` */
  readonly place: string
}

export interface Settings {
  readonly settings: readonly Setting[]
  /** So many more are not listed. */
  readonly more: number
  /** Where what is measured goes; absent members: nowhere. */
  readonly telemetry: { readonly prometheus?: string; readonly otlp?: string }
}

const MAX_SETTINGS = 2_000
const HIDDEN = '***'

export const readSettings = async ({ files, observe, tracing }: Configuration): Promise<Settings> => {
  const all = (await Promise.all(files.map(settingsOf))).flat()
  const { metrics, admin } = observe
  return {
    settings: all.slice(0, MAX_SETTINGS),
    more: Math.max(0, all.length - MAX_SETTINGS),
    telemetry: {
      ...(metrics.isOn && admin.addresses.length > 0 && { prometheus: metrics.path }),
      ...(tracing !== undefined && { otlp: `${tracing.endpoint.origin}${tracing.endpoint.pathname} (${tracing.protocol})` }),
    },
  }
}

/** None where the file is no configuration: a secret may be a file, too. */
const settingsOf = async (file: string): Promise<readonly Setting[]> => {
  if (!['.yaml', '.yml', '.json', '.jsonc', '.json5'].includes(extname(file).toLowerCase())) return []
  const text = await readFile(file, 'utf8').catch(() => '')
  const { tree, problems } = parseText(text, file)
  if (problems.length > 0 || tree.kind !== 'map' || !isConfiguration(tree, file)) return []
  return scalars(tree).map((scalar, at, all) => {
    const { path, place } = scalar
    return { path, place, value: isAfterFlag(scalar, all[at - 1]) ? HIDDEN : shown(scalar) }
  })
}

/** `--token`, and its value as the next item of the same list. */
const isAfterFlag = ({ path }: ScalarTree, before: ScalarTree | undefined): boolean =>
  before !== undefined &&
  /\[[1-9]\d*\]$/.test(path) &&
  listOf(path) === listOf(before.path) &&
  /^--?[\w-]*(?:token|secret|password|key)[\w-]*$/i.test(before.source)

const listOf = (path: string): string => path.replace(/\[\d+\]$/, '')

const isConfiguration = (tree: MapTree, file: string): boolean =>
  recogniseHostFile(tree, file) !== undefined || [...tree.entries.keys()].every((key) => Object.hasOwn(fileSchema.shape, key))

/** Members whose values are secrets, or may be. */
const SECRET =
  /(?:^|\.)(?:env|headers|credentials|introspection|secrets)\.|(?:token|secret|password|passphrase|authorization|cookie|hash|key)s?(?:\[\d+\])?$/i

/** References to variables stay: they are no secrets, and say where one comes from. */
const shown = ({ path, source }: ScalarTree): string => {
  if (/^\$\{[^}]*\}$/.test(source)) return source
  if (SECRET.test(path)) return HIDDEN
  return source
    .replaceAll(/\/\/[^/@\s]*@/g, `//${HIDDEN}@`)
    .replace(/^(--?[\w-]*(?:token|secret|password|key)[\w-]*=).+/i, `$1${HIDDEN}`)
}

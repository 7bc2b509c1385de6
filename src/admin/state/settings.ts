/** The configuration as in its files: each value with its place, before variables are replaced. Probable secrets are hidden. */
import { readFile } from 'node:fs/promises'
import type { Configuration } from '../../config/options.ts'
import { fileSchema } from '../../config/schema/file-schema.ts'
import { hasYamlOrJsonName, parseText } from '../../config/syntax/document.ts'
import { scalars } from '../../config/syntax/tree.ts'
import type { MapTree, ScalarTree } from '../../config/syntax/tree.ts'
import { recogniseHostFile } from '../../config/read/host-file.ts'
import { HIDDEN } from '../../redactor.ts'

export interface Setting {
  /** `servers.github.args[1]`, as in its file. */
  readonly path: string
  /** As written; `***`: it may be a secret. */
  readonly value: string
  /** `/srv/trunkline.yaml:31:7` */
  readonly place: string
}

export interface Settings {
  readonly settings: readonly Setting[]
  /** Number of further values that are not in `settings`. */
  readonly more: number
  /** Where metrics and traces are sent; absent members: nowhere. */
  readonly telemetry: { readonly prometheus?: string; readonly otlp?: string }
}

const MAX_SETTINGS = 2_000

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

/** Empty for a file that is not a configuration: a secret may be in a file, too. */
const settingsOf = async (file: string): Promise<readonly Setting[]> => {
  if (!hasYamlOrJsonName(file)) return []
  const text = await readFile(file, 'utf8').catch(() => '')
  const { tree, problems } = parseText(text, file)
  if (problems.length > 0 || tree.kind !== 'map' || !isConfiguration(tree, file)) return []
  return scalars(tree).map((scalar, at, all) => {
    const { path, place } = scalar
    return { path, place, value: isAfterFlag(scalar, all[at - 1]) ? HIDDEN : shown(scalar) }
  })
}

/** Whether the value follows a flag such as `--token` in the same list. */
const isAfterFlag = ({ path }: ScalarTree, before: ScalarTree | undefined): boolean =>
  before !== undefined &&
  /\[[1-9]\d*\]$/.test(path) &&
  listOf(path) === listOf(before.path) &&
  /^--?[\w-]*(?:token|secret|password|key)[\w-]*$/i.test(before.source)

const listOf = (path: string): string => path.replace(/\[\d+\]$/, '')

const isConfiguration = (tree: MapTree, file: string): boolean =>
  recogniseHostFile(tree, file) !== undefined || [...tree.entries.keys()].every((key) => Object.hasOwn(fileSchema.shape, key))

/** Paths of probable secrets. */
const SECRET =
  /(?:^|\.)(?:env|headers|credentials|introspection|secrets)\.|(?:token|secret|password|passphrase|authorization|cookie|hash|key)s?(?:\[\d+\])?$/i

/** Paths of numbers whose names only look like those of secrets. */
const COUNT =
  /^(?:toolsets\.[\w-]+\.budget\.tokens|listen\.limits\.max_keys|(?:servers\.[\w-]+|defaults)\..*\bresult\.max_tokens)$/

/** The value without secrets. References to variables are shown: they are not secrets. */
const shown = ({ path, source }: ScalarTree): string => {
  if (/^\$\{[^}]*\}$/.test(source)) return source
  if (SECRET.test(path) && !COUNT.test(path)) return HIDDEN
  return (
    source
      .replaceAll(/\/\/[^/@\s]*@/g, `//${HIDDEN}@`)
      .replaceAll(/([?&][\w.-]*(?:token|secret|password|key)[\w.-]*=)[^&#\s]+/gi, `$1${HIDDEN}`)
      // `--token=VALUE`, `API_KEY=VALUE` for docker, `Authorization: Bearer VALUE` for `--header`.
      .replace(/^([\w-]*(?:token|secret|password|key|authorization)[\w-]*(?:=|:\s)\s*).+/i, `$1${HIDDEN}`)
  )
}

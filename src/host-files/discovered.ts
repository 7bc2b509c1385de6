/**
 * A configuration without a file: serves the servers in the files of hosts. Writes nothing. An invalid server is left out, the others are
 * served.
 */
import { resolve } from 'node:path'
import { loadConfiguration } from '../config/load.ts'
import type { Configuration } from '../config/options.ts'
import { ConfigError, formatProblem } from '../config/syntax/problems.ts'
import type { RuntimeEnvironment } from '../config/runtime-environment.ts'
import { nearestKey } from '../config/syntax/nearest-key.ts'
import { keysOf } from '../values/typed-keys.ts'
import { ChangeError } from './edit/change.ts'
import { findInFile } from './found-in-file.ts'
import { findServers } from './found.ts'
import type { FoundFile } from './found.ts'
import { HOSTS } from './hosts.ts'
import type { Scope } from './hosts.ts'
import { planImport, valuesOf } from './import.ts'
import type { ImportPlan } from './import.ts'

export interface Discovered {
  readonly configuration: Configuration
  readonly found: readonly FoundFile[]
  /** Requested hosts and files; empty: all hosts. */
  readonly from: readonly string[]
  readonly plan: ImportPlan
  /** Invalid servers by key, with the problem. */
  readonly leftOut: ReadonlyMap<string, string>
}

export interface Discovery {
  /** The file that this configuration stands for: its id and its state folder are used. */
  readonly standsFor: string
  /** Only files of these scopes are read. */
  readonly scopes: readonly Scope[]
  /** Names of hosts, and files of hosts. Empty: all hosts. */
  readonly from: readonly string[]
}

/** Rejects with `ConfigError`, or with `ChangeError` for an unreadable file in `from`. */
export const discover = async (context: RuntimeEnvironment, { standsFor, scopes, from }: Discovery): Promise<Discovered> => {
  const found = from.length === 0 ? await findServers(context, undefined, scopes) : await findNamed(context, from)
  const plan = planImport(
    found.flatMap(({ servers }) => servers),
    { servers: {}, env: context.env, envFile: {}, folder: '' },
  )
  const env = { ...Object.fromEntries(valuesOf(plan)), ...context.env }
  const leftOut = new Map<string, string>()
  for (;;) {
    const servers = plan.servers.filter(({ key }) => !leftOut.has(key))
    const value = { version: 1, servers: Object.fromEntries(servers.map(({ key, draft }) => [key, draft])) }
    try {
      const configuration = await loadConfiguration({ files: [], value, standsFor }, { ...context, env })
      return { configuration: fromFiles(configuration, context, found), found, from, plan, leftOut }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const known = leftOut.size
      for (const problem of error.problems) {
        const [, key] = /^servers\.([\w-]+)/.exec(problem.path) ?? []
        if (key !== undefined && !leftOut.has(key)) leftOut.set(key, formatProblem({ ...problem, place: placeOf(plan, key) }))
      }
      // No problem belongs to a server, so leaving out a server does not help.
      if (leftOut.size === known) throw error
    }
  }
}

const findNamed = async (context: RuntimeEnvironment, from: readonly string[]): Promise<readonly FoundFile[]> => {
  const found = await Promise.all(
    from.map(async (word) => {
      const host = keysOf(HOSTS).find((name) => name === word)
      if (host !== undefined) return findServers(context, [host])
      const file = findInFile(resolve(context.cwd, word), context)
      return [await file.catch((error: unknown) => throwUnknown(word, error))]
    }),
  )
  return found.flat()
}

/** Throws `error`, or a `ChangeError` with the known hosts if `word` looks like the name of a host. */
const throwUnknown = (word: string, error: unknown): never => {
  if (!/^[\w-]+$/.test(word)) throw error
  const near = nearestKey(word, Object.keys(HOSTS))
  const hint = near === undefined ? `known: ${Object.keys(HOSTS).join(', ')}` : `did you mean "${near}"?`
  throw new ChangeError(`${word} is neither a file nor a known host; ${hint}`)
}

/** Throws `ChangeError` if a file that contained servers is now unreadable. Then the current servers stay in use. */
export const refuseBroken = (before: Discovered, { found }: Discovered): void => {
  const had = new Set(before.found.filter(({ servers }) => servers.length > 0).map(({ file }) => file))
  const broken = found.filter(({ file, servers, problems }) => had.has(file) && servers.length === 0 && problems.length > 0)
  if (broken.length > 0) throw new ChangeError(broken.flatMap(({ problems }) => problems).join('\n'))
}

/** The configuration with the files of its servers. They are watched only on request, because some hosts write their file very often. */
const fromFiles = (
  configuration: Configuration,
  { overrides }: RuntimeEnvironment,
  found: readonly FoundFile[],
): Configuration => {
  const used = found.toSorted((a, b) => Number(b.servers.length > 0) - Number(a.servers.length > 0))
  const files = [...new Set(used.map(({ file }) => file))]
  return Object.freeze({ ...configuration, files, watch: overrides?.watch === true })
}

const placeOf = (plan: ImportPlan, key: string): string =>
  plan.servers.find((server) => server.key === key)?.from[0]?.place ?? key

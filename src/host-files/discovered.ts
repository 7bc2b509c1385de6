/**
 * A configuration without a file: the servers that hosts have, served as they are found. Nothing is written. What is wrong with one
 * server leaves that one out.
 */
import { loadConfiguration } from '../config/load.ts'
import type { Configuration } from '../config/options.ts'
import { ConfigError, formatProblem } from '../config/syntax/problems.ts'
import type { Context } from '../config/runtime-environment.ts'
import { findServers } from './found.ts'
import type { FoundFile } from './found.ts'
import type { Scope } from './hosts.ts'
import { planImport } from './import.ts'
import type { ImportPlan } from './import.ts'

export interface Discovered {
  readonly configuration: Configuration
  readonly found: readonly FoundFile[]
  readonly plan: ImportPlan
  /** Servers that cannot be used, with why. */
  readonly leftOut: ReadonlyMap<string, string>
}

/** `standsFor`: the file that a person would keep it in. Of projects only what `scopes` has. Rejects with `ConfigError`. */
export const discover = async (context: Context, standsFor: string, scopes: readonly Scope[]): Promise<Discovered> => {
  const found = await findServers(context, undefined, scopes)
  const plan = planImport(
    found.flatMap(({ servers }) => servers),
    { servers: {}, env: context.env, envFile: {}, folder: '' },
  )
  const values = new Map<string, string>([...plan.secrets, ...[...plan.unset.keys()].map((name) => [name, ''] as const)])
  const env = { ...Object.fromEntries(values), ...context.env }
  const leftOut = new Map<string, string>()
  for (;;) {
    const servers = plan.servers.filter(({ key }) => !leftOut.has(key))
    const value = { version: 1, servers: Object.fromEntries(servers.map(({ key, draft }) => [key, draft])) }
    try {
      const configuration = await loadConfiguration({ files: [], value, standsFor }, { ...context, env })
      return { configuration, found, plan, leftOut }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const known = leftOut.size
      for (const problem of error.problems) {
        const [, key] = /^servers\.([\w-]+)/.exec(problem.path) ?? []
        if (key !== undefined && !leftOut.has(key)) leftOut.set(key, formatProblem({ ...problem, place: placeOf(plan, key) }))
      }
      // Nothing of it is about a server: it cannot be helped by leaving one out.
      if (leftOut.size === known) throw error
    }
  }
}

const placeOf = (plan: ImportPlan, key: string): string =>
  plan.servers.find((server) => server.key === key)?.from[0]?.place ?? key

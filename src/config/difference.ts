/** What a new configuration changes of a running one (DECISIONS 2): what restarts, and what only shows up in views. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { ServerOptions } from '../downstream/options.ts'
import type { HostOptions } from '../host/options.ts'
import type { Configuration } from './options.ts'

export interface Difference {
  /** Server keys, each in exactly one of the four. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** What they are started or reached with differs: they restart. */
  readonly changed: readonly string[]
  /** They keep process, links and sessions; prefix, limits and the like may differ all the same. */
  readonly same: readonly string[]
  /** The listener closes and opens again. */
  readonly listeners: boolean
  /** YAML paths that take effect only when the whole process starts again. */
  readonly needsRestart: readonly string[]
}

const STARTED_WITH = [
  'launch',
  'url',
  'transport',
  'era',
  'headers',
  'proxies',
  'tls',
  'credential',
  'roots',
  'sharing',
] as const satisfies readonly (keyof ServerOptions)[]
/** By YAML path, what stays as it was when the process started. */
const KEPT: Readonly<Record<string, (configuration: Configuration) => unknown>> = {
  'state.dir': ({ stateDir }) => stateDir,
  'state.key': ({ stateKey }) => stateKey,
  'telemetry.log.format': ({ log }) => log.format,
  'listen.http.server': ({ host }) => host.httpServer,
  'listen.limits.max_header': ({ host }) => host.limits.maxHeaderBytes,
  'listen.limits.header_lines': ({ host }) => host.limits.maxHeaderLines,
  'listen.limits.headers_timeout': ({ host }) => host.limits.headersTimeoutMs,
  'listen.limits.request_timeout': ({ host }) => host.limits.requestTimeoutMs,
  'listen.limits.keep_alive': ({ host }) => host.limits.keepAliveTimeoutMs,
  'listen.limits.write_stall': ({ host }) => host.limits.writeStallMs,
}
const LISTENED_WITH = ['addresses', 'path', 'sse'] as const satisfies readonly (keyof HostOptions)[]

export const diffConfigurations = (before: Configuration, after: Configuration): Difference => {
  const old = new Map(before.servers.map((server) => [server.key, server]))
  const keys = after.servers.map(({ key }) => key)
  const kept = after.servers.filter(({ key }) => old.has(key))
  const restarts = (server: ServerOptions) => !equalIn(STARTED_WITH, old.get(server.key)!, server)
  return {
    added: keys.filter((key) => !old.has(key)),
    removed: [...old.keys()].filter((key) => !keys.includes(key)),
    changed: kept.filter(restarts).map(({ key }) => key),
    same: kept.filter((server) => !restarts(server)).map(({ key }) => key),
    listeners: !equalIn(LISTENED_WITH, before.host, after.host),
    needsRestart: Object.keys(KEPT).filter((path) => KEPT[path]?.(before) !== KEPT[path]?.(after)),
  }
}

/** URLs compare by their text: two objects of one address have no own members to compare. */
const equalIn = <T extends object>(members: readonly (keyof T)[], a: T, b: T): boolean =>
  members.every((member) => isDeepStrictEqual(comparable(a[member]), comparable(b[member])))

const comparable = (value: unknown) => (value instanceof URL ? value.href : value)

/**
 * A configuration as digests of its options: two can be compared, and neither can be read. What the environment of the process
 * contributes is marked and not digested, so that two shells with another `PATH` do not count as two configurations; nor does the
 * folder in which the file lies.
 */
import { createHmac } from 'node:crypto'
import { dirname, sep } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { ServerOptions } from '../../downstream/options.ts'
import type { HostLimits, HostOptions } from '../../host/options.ts'
import type { Configuration } from '../options.ts'

/**
 * Digests by name, for `isSame`. Without the salt they say nothing. Of a value with paths in the folder of its file there are two:
 * of the paths as they are, and as they are from that folder.
 */
export type Fingerprints = Readonly<Record<string, string>>

/** Whether two digests of one salt are of the same, be it each in its own folder. */
export const isSame = (a: string | undefined, b: string | undefined): boolean => {
  const [whole, fromFolder = whole] = a?.split(' ') ?? []
  const [otherWhole, otherFromFolder = otherWhole] = b?.split(' ') ?? []
  return whole === otherWhole || fromFolder === otherFromFolder
}

export interface ServerFingerprints {
  readonly key: string
  /** By member of `ServerOptions`; those of `launch` one by one (`launch.env`), absent where nothing is launched. */
  readonly options: Fingerprints
}

export interface ConfigurationFingerprints {
  /** In the order of the configuration. */
  readonly servers: readonly ServerFingerprints[]
  /** What a listener is opened with. */
  readonly listeners: string
  /** By YAML path, what stays as it was when the process started. */
  readonly kept: Fingerprints
  /** All other options beside those of servers. */
  readonly others: string
}

export interface FingerprintOptions {
  /** 32 random bytes, of this comparison alone. */
  readonly salt: Buffer
  /** The environment under which the configuration was read; what it contributes is marked. Absent: everything is digested. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

const KEPT: Readonly<Record<string, (configuration: Configuration) => unknown>> = {
  'state.dir': ({ stateDir }) => stateDir,
  'state.key': ({ stateKeys }) => stateKeys,
  'replicas.url': ({ replicaUrl }) => replicaUrl,
  store: ({ store }) => store,
  'listen.workers': ({ workers }) => workers,
  'telemetry.log.format': ({ log }) => log.format,
  'listen.http.server': ({ host }) => host.httpServer,
  'listen.http.tls': ({ host }) => host.tls !== undefined,
  'listen.http.proxy_protocol': ({ host }) => host.takesProxyHeader,
  'listen.limits.max_header': ({ host }) => host.limits.maxHeaderBytes,
  'listen.limits.header_lines': ({ host }) => host.limits.maxHeaderLines,
  'listen.limits.headers_timeout': ({ host }) => host.limits.headersTimeoutMs,
  'listen.limits.request_timeout': ({ host }) => host.limits.requestTimeoutMs,
  'listen.limits.unread_body': ({ host }) => host.limits.maxUnreadBytes,
  'listen.limits.keep_alive': ({ host }) => host.limits.keepAliveTimeoutMs,
  'listen.limits.write_stall': ({ host }) => host.limits.writeStallMs,
}
/** Members that `KEPT` and `listeners` name already. */
const NAMED_LIMITS: ReadonlySet<string> = new Set([
  'maxHeaderBytes',
  'maxHeaderLines',
  'headersTimeoutMs',
  'requestTimeoutMs',
  'maxUnreadBytes',
  'keepAliveTimeoutMs',
  'writeStallMs',
] satisfies (keyof HostLimits)[])
const LISTENED_WITH: readonly (keyof HostOptions)[] = ['addresses', 'unix', 'inherited', 'path', 'sse']
const NAMED_OF_HOST: ReadonlySet<string> = new Set([...LISTENED_WITH, 'httpServer', 'takesProxyHeader', 'limits'])
const LAUNCH = ['command', 'args', 'env', 'cwd'] as const
/** Members that are no options of a server: its name, its place, what a lock file says, and what `launch.…` tells. */
const NO_OPTIONS: ReadonlySet<string> = new Set(['key', 'place', 'locked', 'launch'] satisfies (keyof ServerOptions)[])

export const fingerprint = (configuration: Configuration, options: FingerprintOptions): ConfigurationFingerprints => {
  const folder = dirname(configuration.files[0] ?? '.')
  const digestOf = (text: string): string => createHmac('sha256', options.salt).update(text).digest('base64url')
  const digest = (value: unknown): string => {
    const [asWritten, fromFolder] = [undefined, folder].map((base) => digestOf(canonicalText(value, base)))
    return asWritten === fromFolder ? (asWritten ?? '') : `${asWritten} ${fromFolder}`
  }
  const { gateway, host, observe, audit, tracing, faults, policy, log, watch, confirm } = configuration
  return {
    servers: configuration.servers.map((server) => ({
      key: server.key,
      options: Object.fromEntries(optionsOf(server, configuration, options).map(([name, value]) => [name, digest(value)])),
    })),
    listeners: digest(LISTENED_WITH.map((member) => host[member])),
    kept: Object.fromEntries(Object.entries(KEPT).map(([path, of]) => [path, digest(of(configuration))])),
    others: digest([
      gateway,
      observe,
      audit,
      tracing,
      faults,
      policy,
      log.level,
      watch,
      confirm,
      without(host, NAMED_OF_HOST),
      without(host.limits, NAMED_LIMITS),
    ]),
  }
}

/** In the order of the schema, the launch first. */
const optionsOf = (server: ServerOptions, { proxies }: Configuration, { env }: FingerprintOptions): [string, unknown][] => {
  const { launch } = server
  const launched = launch === undefined ? [] : LAUNCH.map((name): [string, unknown] => [`launch.${name}`, launch[name]])
  const all = [...launched, ...Object.entries(server).filter(([name]) => !NO_OPTIONS.has(name))]
  if (env === undefined) return all
  return all.map(([name, value]): [string, unknown] => {
    if (name === 'proxies' && isDeepStrictEqual(value, proxies)) return [name, INHERITED]
    return [name, launch !== undefined && name === 'launch.env' ? marked(launch.env, env) : value]
  })
}

/** In place of what is as the environment has it. */
const INHERITED = { inherited: true }

const marked = (values: Readonly<Record<string, string>>, env: NonNullable<FingerprintOptions['env']>): object =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value === env[name] ? INHERITED : value]))

const without = (value: object, names: ReadonlySet<string>): object =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.has(name)))

/**
 * One text for each value, whatever the order of its members; where something is written in a file (`place`) does not count, and
 * paths in `folder`, where there is one, count from there.
 */
const canonicalText = (value: unknown, folder: string | undefined): string => {
  const text = (inner: unknown): string => canonicalText(inner, folder)
  if (value === undefined) return 'undefined'
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string')
    return JSON.stringify(folder !== undefined && isIn(folder, value) ? [value.slice(folder.length)] : value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (value instanceof URL) return JSON.stringify(value.href)
  if (ArrayBuffer.isView(value)) return `<${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}>`
  if (Array.isArray(value)) return `[${value.map(text).join(',')}]`
  if (value instanceof Set) return `(${[...value].map(text).sort().join(',')})`
  const entries: [unknown, unknown][] = value instanceof Map ? [...value] : Object.entries(value)
  const texts = entries.filter(([name]) => name !== 'place').map(([name, member]) => `${text(name)}:${text(member)}`)
  return `{${texts.sort().join(',')}}`
}

const isIn = (folder: string, path: string): boolean => path === folder || path.startsWith(folder + sep)

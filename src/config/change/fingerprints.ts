/**
 * A configuration as digests of its options: two can be compared, and neither can be read. Values from the environment of the process
 * are marked instead of digested, so that two shells with different `PATH` do not count as two configurations. The folder of the file
 * does not count either.
 */
import { createHmac, createSecretKey } from 'node:crypto'
import { dirname, sep } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { ServerOptions } from '../../downstream/options.ts'
import type { HostLimits, HostOptions } from '../../host/options.ts'
import type { Configuration } from '../options.ts'

/**
 * Digests by name, for `isSame`. They are useless without the salt. A value with paths in the folder of its file has two, separated by
 * a blank: of the absolute paths, and of the paths relative to that folder.
 */
export type Fingerprints = Readonly<Record<string, string>>

/** Whether two digests of one salt are equal, with absolute paths or relative to the folders of their files. */
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
  /** Options with which a listener is opened. */
  readonly listeners: string
  /** Options that are fixed when the process starts, by YAML path. */
  readonly kept: Fingerprints
  /** All other options beside those of servers. */
  readonly others: string
}

export interface FingerprintOptions {
  /** 32 random bytes, used for this comparison only. */
  readonly salt: Buffer
  /** The environment with which the configuration was read; its values are marked. Absent: everything is digested. */
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
/** Limits that `KEPT` contains. */
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
/** Members that are not options of a server: its name, its place, its lock; `launch` is compared member by member. */
const NO_OPTIONS: ReadonlySet<string> = new Set(['key', 'place', 'locked', 'launch'] satisfies (keyof ServerOptions)[])

export const fingerprint = (configuration: Configuration, options: FingerprintOptions): ConfigurationFingerprints => {
  const folder = dirname(configuration.files[0] ?? '.')
  const key = createSecretKey(options.salt)
  const digestOf = (text: string): string => createHmac('sha256', key).update(text).digest('base64url')
  const digest = (value: unknown): string => {
    const texts = new Set([canonicalText(value, undefined), canonicalText(value, folder)])
    return [...texts].map(digestOf).join(' ')
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

/** The options in the order of the schema, the launch first. */
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

/** Replaces a value that equals the one of the environment. */
const INHERITED = { inherited: true }

const marked = (values: Readonly<Record<string, string>>, env: NonNullable<FingerprintOptions['env']>): object =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value === env[name] ? INHERITED : value]))

const without = (value: object, names: ReadonlySet<string>): object =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.has(name)))

/**
 * One text for each value, independent of the order of its members. Positions in files (`place`) are left out, and paths in `folder`
 * are written relative to it.
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

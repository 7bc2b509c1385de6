/** Reads files into one complete configuration, or into the list of everything that is wrong with them. Starts and writes nothing. */
import { join, resolve } from 'node:path'
import type { ServerOptions } from '../downstream/options.ts'
import { findCollisions } from './build/servers/collisions.ts'
import { secretsOfAuth, warnOfExpired } from './build/hosts/auth.ts'
import { configurationId, runtimeRoot, stateRoot } from './read/folders.ts'
import { buildFaults } from './build/policies/faults.ts'
import { gather, leftOut } from './read/gather.ts'
import type { Gathered, Sources } from './read/gather.ts'
import { lockedServer, readLockFile } from './build/servers/lock-file.ts'
import type { RuntimeEnvironment } from './runtime-environment.ts'
import type { Configuration } from './options.ts'
import { ConfigError, reporterAt } from './syntax/problems.ts'
import type { Problem } from './syntax/problems.ts'
import { credentialsOf, secretsOf, warnOfReadableSecrets } from './build/known-secrets.ts'
import { listenFilesOf } from './build/hosts/listen.ts'
import { buildObserve } from './build/hosts/observe.ts'
import { collectRates } from './build/policies/rates.ts'
import { buildPolicy, secretsOfPolicy } from './build/policies/policy.ts'
import { readProxies } from './build/servers/proxies.ts'
import { buildStore, checkReplicas, secretsOfStore } from './build/hosts/replicas.ts'
import { buildServer } from './build/servers/server.ts'
import { buildTracing, secretsOfTracing } from './build/tracing.ts'
import { tlsFilesOf } from './build/tls.ts'
import { buildWorkers } from './build/hosts/workers.ts'
import { RESERVED_KEYS } from './schema/server-key.ts'
import { buildAudit, buildGateway, buildHost } from './build/hosts/settings.ts'
import { checkStrict, withStrict } from './build/strict.ts'
import { buildToolsets } from './build/policies/toolsets.ts'
import { child, scalarTexts, textOf } from './syntax/tree.ts'
import { absolutePath } from './syntax/variables.ts'

/** Throws `ConfigError` with all problems at once. */
export const loadConfiguration = async (sources: Sources, context: RuntimeEnvironment): Promise<Configuration> => {
  const problems: Problem[] = []
  const warnings: string[] = []
  const found = await gather(sources, context, problems, warnings)
  const gathered = { ...found, settings: withStrict(found.settings) }
  const { settings } = gathered
  checkStrict(found, problems)
  const lock = await readLockFile(gathered, context, problems, warnings)
  const servers = buildServers(gathered, context, problems, warnings).map((server) => ({
    ...server,
    locked: lockedServer(lock, server.key),
  }))
  const host = buildHost(gathered, context, problems)
  const observe = buildObserve(gathered, host, problems)
  const audit = buildAudit(gathered, context, problems)
  const faults = buildFaults(gathered, context, problems)
  const policy = await buildPolicy(gathered, servers, problems)
  const tracing = buildTracing(settings.telemetry?.otlp)
  checkReplicas(gathered, problems)
  const workers = buildWorkers(gathered, problems)
  const store = buildStore(gathered, context, problems)
  const toolsets = buildToolsets(gathered, servers, problems, warnings)
  const gateway = {
    ...buildGateway(settings),
    toolsets,
    scopes: host.auth?.oauth?.scopes ?? [],
    rates: collectRates(settings, servers, toolsets),
    // The result of a task arrives by another request and could not be inspected.
    tasks: policy?.service?.replaces.includes('results') !== true,
  }
  problems.push(...findCollisions(servers, gateway))
  if (problems.length > 0) throw new ConfigError(problems)

  const proxies = readProxies(context.env)
  warnings.push(...proxies.warnings)
  if (servers.length === 0) warnings.push('no server is configured')
  const first = context.overrides?.standsFor ?? resolve(context.cwd, sources.files[0] ?? sources.standsFor ?? '.')
  const id = configurationId(first)
  const credentials = credentialsIn(gathered)
  const keys = [...servers, host, store].flatMap((one) => one?.tls?.key ?? [])
  const secrets = [...credentials, ...proxies.secrets, ...keys, ...secretsIn(gathered)]
  return deepFreeze({
    id,
    named: context.overrides?.named ?? [],
    files: [
      ...gathered.files,
      ...[...gathered.servers.values()].flatMap((server) => tlsFilesOf(server, context)),
      ...listenFilesOf(gathered, context),
      ...(lock === undefined ? [] : [lock.file]),
    ],
    emptyFiles: [...gathered.emptyFiles],
    globs: [...gathered.globs],
    guards: gathered.guards,
    servers,
    proxies: proxies.rules,
    gateway,
    host,
    observe,
    audit,
    tracing,
    faults,
    policy,
    allowsFaults: context.overrides?.allowFaults === true,
    lock,
    log: {
      level: settings.telemetry?.log?.level ?? context.overrides?.logLevel ?? 'info',
      format: settings.telemetry?.log?.format ?? 'auto',
    },
    stateDir: keepsState(sources, gathered, context) ? join(stateFolder(gathered, context), id) : undefined,
    stateKeys: settings.state?.key ?? [],
    workers,
    replicaUrl: settings.replicas?.url,
    store,
    runtimeDir: runtimeRoot(context),
    watch: context.overrides?.watch ?? settings.reload?.watch ?? true,
    confirm: settings.reload?.confirm ?? false,
    secrets: [...new Set(secrets)],
    credentials: [...new Set(credentials)],
    warnings: [...warnings, ...warnOfExpired(host.auth, Date.now()), ...warnOfReadableSecrets(gathered.servers.values())],
  })
}

/** What authenticates Trunkline, or hosts and operators at it. */
const credentialsIn = ({ secrets, servers, sections }: Gathered): readonly string[] => [
  ...secrets,
  ...[...servers.values()].flatMap(credentialsOf),
  ...secretsOfAuth(sections.get('auth')),
  ...secretsOfTracing(sections.get('telemetry')),
  ...secretsOfStore(sections.get('store')),
]

/** What else must never be shown. */
const secretsIn = ({ servers, sections }: Gathered): readonly string[] => [
  ...scalarTexts(child(sections.get('state'), 'key')).flatMap((text) => text.trim().split(/[\s,]+/)),
  ...[...servers.values()].flatMap(secretsOf),
  ...secretsOfPolicy(sections.get('policy')),
]

const buildServers = (
  { servers, settings }: Gathered,
  context: RuntimeEnvironment,
  problems: Problem[],
  warnings: string[],
): readonly ServerOptions[] => {
  const built: ServerOptions[] = []
  const owners = new Map(
    [...servers.values()].filter(({ enabled }) => enabled).map(({ key, tree }) => [key, { key, place: tree.place }]),
  )
  for (const gathered of servers.values()) {
    const { key, tree, enabled } = gathered
    if (gathered.isLeftOut) continue
    const own: Problem[] = []
    const server = buildServer(gathered, settings.defaults ?? {}, context, own)
    if (!gathered.isHosts) problems.push(...own)
    else if (enabled) warnings.push(...own.map((problem) => leftOut(key, problem)))
    if (!enabled) continue
    if (server) built.push(server)
    const prefix = textOf(child(tree, 'prefix'))
    if (prefix === undefined) continue
    const report = (message: string) => reporterAt(tree, problems)(['prefix'], message, 'choose another prefix')
    const owner = owners.get(prefix)
    if (RESERVED_KEYS.includes(prefix)) report(`prefix "${prefix}" is reserved`)
    if (owner && owner.key !== key) report(`"${prefix}" is already the key or prefix of server "${owner.key}" at ${owner.place}`)
    owners.set(prefix, { key, place: (child(tree, 'prefix') ?? tree).place })
  }
  return built
}

/** A program that passes an object does not expect files in the home folder. */
const keepsState = ({ value, standsFor }: Sources, { settings }: Gathered, { overrides }: RuntimeEnvironment): boolean =>
  value === undefined || standsFor !== undefined || settings.state?.dir !== undefined || overrides?.state !== undefined

const stateFolder = ({ settings, folders }: Gathered, context: RuntimeEnvironment): string => {
  const { state } = context.overrides ?? {}
  if (state !== undefined) return resolve(context.cwd, state)
  return settings.state?.dir === undefined
    ? stateRoot(context)
    : absolutePath(settings.state.dir, folders.get('state') ?? context.cwd, context.home)
}

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    if (!(value instanceof URL)) Object.freeze(value)
    Object.values(value).forEach(deepFreeze)
  }
  return value
}

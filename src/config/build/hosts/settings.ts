/** Options of the gateway, of its listeners and of the audit log. */
import { isLoopbackHost } from '../../../transport/loopback.ts'
import { DEFAULT_GATEWAY } from '../../../gateway/options.ts'
import type { GatewayOptions } from '../../../gateway/options.ts'
import { DEFAULT_HOST } from '../../../host/options.ts'
import type { Address, HostOptions } from '../../../host/options.ts'
import { buildAuth } from './auth.ts'
import {
  cacheSchema,
  gatewayLimitsSchema,
  gatewayTimeoutsSchema,
  httpSchema,
  listenLimitsSchema,
  namingSchema,
} from '../../schema/file-schema.ts'
import type { Settings } from '../../schema/file-schema.ts'
import { fillFrom } from '../fill.ts'
import { buildInherited, buildListenTls, buildUnix } from './listen.ts'
import type { Gathered } from '../../read/gather.ts'
import type { RuntimeEnvironment } from '../../runtime-environment.ts'
import { parseAddress } from '../../schema/kinds.ts'
import type { AuditSettings } from '../../options.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem } from '../../syntax/problems.ts'
import { absolutePath } from '../../syntax/variables.ts'

export const buildGateway = ({ naming, timeouts, cache, limits }: Settings): GatewayOptions => {
  const named = fillFrom(namingSchema, DEFAULT_GATEWAY, naming)
  const timed = fillFrom(gatewayTimeoutsSchema, named, timeouts)
  const limited = fillFrom(gatewayLimitsSchema, timed, limits)
  const cached = fillFrom(cacheSchema, limited, cache)
  const { parking, results } = DEFAULT_GATEWAY
  return {
    ...cached,
    parking: {
      ...parking,
      ttlMs: limits?.park_ttl ?? parking.ttlMs,
      maxParked: limits?.parked ?? parking.maxParked,
      maxPerPrincipal: limits?.parked_per_principal ?? parking.maxPerPrincipal,
    },
    results: { maxBytes: limits?.results ?? results.maxBytes, ttlMs: limits?.result_ttl ?? results.ttlMs },
  }
}

/** Adds a problem for each option that has no effect without a file. */
export const buildAudit = (
  { settings, sections, folders }: Gathered,
  { home, cwd }: RuntimeEnvironment,
  problems: Problem[],
): AuditSettings | undefined => {
  const { audit, audit_bodies: bodies = false, audit_on_failure: onFailure = 'refuse' } = settings.telemetry?.log ?? {}
  if (audit !== undefined) return { file: absolutePath(audit, folders.get('telemetry') ?? cwd, home), bodies, onFailure }
  const report = reporterAt(sections.get('telemetry'), problems)
  for (const key of ['audit_bodies', 'audit_on_failure'] as const)
    if (settings.telemetry?.log?.[key] !== undefined)
      report(['log', key], `"${key}" without audit has no effect`, 'name a file: audit: ./audit.ndjson')
  return undefined
}

/** Adds problems for addresses that the network reaches without authentication, reserved paths, and revisions in the wrong order. */
export const buildHost = (gathered: Gathered, context: RuntimeEnvironment, problems: Problem[]): HostOptions => {
  const { settings, sections, servers } = gathered
  const { http, revisions, stream_after: streamAfter, poll_after: pollAfterMs, orphan, limits } = settings.listen ?? {}
  const report = reporterAt(sections.get('listen'), problems)
  const allowUnauthenticatedNetwork = context.overrides?.allowUnauthenticatedNetwork ?? false
  const path = http?.path ?? DEFAULT_HOST.path
  const authContext = {
    path,
    publicUrl: http?.public_url,
    serverKeys: new Set(servers.keys()),
    toolsets: new Set(Object.keys(settings.toolsets ?? {})),
    keepsClaims: settings.policy !== undefined,
    maxHeaderBytes: limits?.max_header ?? DEFAULT_HOST.limits.maxHeaderBytes,
  }
  const auth = buildAuth(settings.auth, sections.get('auth'), authContext, problems)
  const options: HostOptions = {
    ...fillFrom(httpSchema, DEFAULT_HOST, http),
    streamAfterLegacyMs: streamAfter?.legacy ?? DEFAULT_HOST.streamAfterLegacyMs,
    streamAfterMs: streamAfter?.modern ?? DEFAULT_HOST.streamAfterMs,
    tls: buildListenTls(gathered, context, report),
    unix: buildUnix(gathered, context, report),
    inherited: buildInherited(gathered, context, report),
    auth,
    allowUnauthenticatedNetwork,
    pollAfterMs: pollAfterMs ?? DEFAULT_HOST.pollAfterMs,
    revisions: { min: revisions?.min ?? DEFAULT_HOST.revisions.min, max: revisions?.max ?? DEFAULT_HOST.revisions.max },
    drainMs: settings.reload?.drain ?? DEFAULT_HOST.drainMs,
    lameDuckMs: settings.reload?.lame_duck,
    limits: {
      ...fillFrom(listenLimitsSchema, DEFAULT_HOST.limits, limits),
      maxInFlightBytes: settings.limits?.in_flight_bytes ?? DEFAULT_HOST.limits.maxInFlightBytes,
      orphanMs: orphan ?? DEFAULT_HOST.limits.orphanMs,
      // All programs of this machine share one address, so they are limited only where the option is set.
      maxConnectionsPerLoopback: limits?.connections_per_address ?? DEFAULT_HOST.limits.maxConnectionsPerLoopback,
    },
  }
  if (/^\/(sse|messages|servers)(\/|$)/.test(options.path))
    report(['http', 'path'], `${options.path} is reserved`, 'choose another, such as /mcp')
  const { min, max } = options.revisions
  if (min > max) report(['revisions'], `min ${min} is later than max ${max}`, 'exchange them')

  if (http?.proxy_protocol === true && options.trustedProxies.length === 0)
    report(['http', 'proxy_protocol'], 'no proxy is trusted', 'name the proxies: trusted_proxies: [10.0.0.5]')

  const listen = context.overrides?.listen
  const configured = settings.listen?.systemd === true && http?.bind === undefined ? [] : options.addresses
  const addresses = listen === undefined ? configured : overridden(listen, problems)
  if (listen === undefined && addresses.length === 0 && settings.listen?.systemd !== true && options.unix === undefined)
    report(['http', 'bind'], 'there is no address left to listen at', 'name one, or listen.unix')
  const open = allowUnauthenticatedNetwork || auth !== undefined ? undefined : addresses.find(({ host }) => !isLoopbackHost(host))
  if (open) {
    const message = `${open.host}:${open.port} can be reached from the network, and hosts are not authenticated`
    const remedy = 'configure auth, bind 127.0.0.1, or start with --allow-unauthenticated-network'
    if (listen === undefined) report(['http', 'bind'], message, remedy)
    else problems.push({ place: '--listen', path: '', message, remedy })
  }
  return { ...options, addresses }
}

const overridden = (listen: string, problems: Problem[]): readonly Address[] => {
  const addresses = listen.split(',').map((text) => parseAddress(text.trim()))
  if (addresses.every((address) => address !== undefined)) return addresses
  const message = `expected an address such as 127.0.0.1:7420, got ${JSON.stringify(listen)}`
  problems.push({ place: '--listen', path: '', message, remedy: 'separate several with commas' })
  return []
}

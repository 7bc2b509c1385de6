/**
 * The cells of the interop matrix: every official host × every kind of downstream that the official SDKs make. Tests, and the
 * page that is generated from their results, take their cells from here.
 */
import { hostKinds } from '../support/hosts.ts'
import type { HostKind } from '../support/hosts.ts'
import { pipedCommand, startServer } from '../support/processes.ts'
import type { ServerName } from '../support/processes.ts'

/** One kind of downstream. */
export interface DownstreamKind {
  server: ServerName
  transport: 'stdio' | 'sse' | 'http'
  era: 'legacy' | 'modern'
  args: string[]
}

/** By server key, which is the prefix of its names. A dual-era server is spoken to in the modern era. */
export const downstreamKinds = {
  'stdio-legacy': { server: 'sdk1-server', transport: 'stdio', era: 'legacy', args: [] },
  sse: { server: 'sdk1-server', transport: 'sse', era: 'legacy', args: [] },
  'http-legacy': { server: 'sdk1-server', transport: 'http', era: 'legacy', args: [] },
  'http-modern': { server: 'reference-server', transport: 'http', era: 'modern', args: ['--era', 'modern'] },
  'stdio-modern': { server: 'reference-server', transport: 'stdio', era: 'modern', args: ['--era', 'modern'] },
  'http-dual': { server: 'reference-server', transport: 'http', era: 'modern', args: ['--era', 'dual'] },
  'stdio-dual': { server: 'reference-server', transport: 'stdio', era: 'modern', args: ['--era', 'dual'] },
} as const satisfies Record<string, DownstreamKind>

/** The name of a row of `downstreamKinds`. */
export type DownstreamKey = keyof typeof downstreamKinds
export const downstreamKeys = Object.keys(downstreamKinds) as DownstreamKey[]

/** The hosts that come in over these transports. */
export const hostsOver = (...transports: string[]): HostKind[] =>
  (Object.keys(hostKinds) as HostKind[]).filter((kind) => transports.includes(hostKinds[kind].transport))

/** The era in which a host ends up when it meets Trunkline, which speaks both. */
export const eraOf = (host: HostKind): 'legacy' | 'modern' => (/sdk2 (modern|auto)/.test(host) ? 'modern' : 'legacy')

/** The revision that is spoken in an era, on both sides of Trunkline. */
export const revisionOf = (era: 'legacy' | 'modern'): string => (era === 'legacy' ? '2025-11-25' : '2026-07-28')

/** Names a cell in test titles. */
export const cellTitle = (host: HostKind, downstream: DownstreamKey): string => `${host} → Trunkline → ${downstream}`

/** One downstream, ready for `servers:` of a configuration. */
export interface StartedDownstream extends AsyncDisposable {
  config: Record<string, unknown>
}

/** Starts a downstream; of one on stdio, what stands behind each process that Trunkline starts. Every list has several pages. */
export const startDownstream = async (key: DownstreamKey): Promise<StartedDownstream> => {
  const { server, transport, args } = downstreamKinds[key]
  const started = await startServer(server, transport === 'stdio' ? 'pipes' : transport, ...args, '--pages')
  const config = transport === 'stdio' ? { ...pipedCommand(started) } : { url: started.url }
  return { config, [Symbol.asyncDispose]: () => started[Symbol.asyncDispose]() }
}

/**
 * Waits for the first request of a host that was just connected: its revision, the number of its listed tools, and the limits that they
 * exceed. The process that serves the host records it (host/host-sightings).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connectAdmin } from '../../admin/socket/client.ts'
import type { HostFinding } from '../../catalog/lint/host-lint.ts'
import type { HostName } from '../../host-files/hosts.ts'
import { readSightings } from '../../host/host-sightings.ts'
import type { HostSighting } from '../../host/host-sightings.ts'
import { HOSTS } from '../../host-files/hosts.ts'
import { storedLint } from './stored-lint.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import type { Loaded } from '../terminal/io.ts'
import type { Line } from '../terminal/print.ts'
import { counted } from '../../values/counted.ts'

/** The first request of a host. */
export interface FirstRequest {
  readonly seen: HostSighting
  /** Tools, and the list as a whole, that exceed the limits of the host. */
  readonly findings: readonly HostFinding[]
}

const POLL_MS = 250
/** Time after the handshake in which most hosts list tools. */
const LISTING_MS = 3_000
/** Findings that are shown. */
const SHOWN = 4

/** `undefined`: there was none within `waitMs`, or `signal` fired. `sinceMs`: wall clock. */
export const firstRequest = async (
  loaded: Loaded,
  host: HostName,
  { sinceMs, waitMs, signal }: { readonly sinceMs: number; readonly waitMs: number; readonly signal: AbortSignal },
): Promise<FirstRequest | undefined> => {
  const { stateDir } = loaded.configuration
  if (stateDir === undefined) return undefined
  const untilMs = performance.now() + waitMs
  let found: HostSighting | undefined
  let foundMs = Infinity
  for (;;) {
    found = (await readSightings(stateDir, sinceMs)).find((sighting) => isOf(host, sighting)) ?? found
    if (found !== undefined) foundMs = Math.min(foundMs, performance.now())
    const nowMs = performance.now()
    if (signal.aborted || found?.tools !== undefined || nowMs - foundMs >= LISTING_MS || nowMs >= untilMs) break
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
  return found && { seen: found, findings: await findingsOf(loaded, host, found) }
}

/** By the name of the client; an unknown name counts as the expected host. */
const isOf = (host: HostName, { name }: HostSighting): boolean => {
  const small = name.toLowerCase()
  return HOSTS[host].client.test(small) || Object.values(HOSTS).every(({ client }) => !client.test(small))
}

const findingsOf = async (loaded: Loaded, host: HostName, { toolset }: HostSighting): Promise<readonly HostFinding[]> => {
  const control = await connectAdmin(loaded.socket)
  const { findings } = control === undefined ? storedLint(loaded, [host]) : await control.lint([host])
  return findings.filter((finding) => finding.toolset === (toolset ?? ''))
}

/** `● Cursor has connected: 2025-11-25 over stdio, 53 tools (cursor-vscode 1.7)`, and exceeded limits. */
export const firstRequestLines = (host: HostName, { seen, findings }: FirstRequest, command: CommandPrinter): Line[] => {
  const { name, version, revision, transport, tools } = seen
  const listed = tools === undefined ? 'it has not listed tools yet' : counted(tools, 'tool')
  const who = name === '' ? '' : ` (${[name, version].filter(Boolean).join(' ')})`
  const rest = findings.length - SHOWN
  return [
    `  ● ${HOSTS[host].label} has connected: ${revision} over ${transport}, ${listed}${who}`,
    ...findings
      .slice(0, SHOWN)
      .map(({ tool, message, remedy }) => `    ▲ ${tool === '' ? '' : `${tool}: `}${message} → ${remedy}`),
    ...(rest > 0 ? [`    ▲ and ${rest} more: ${command('check', '--host', host)}`] : []),
  ]
}

/** `trunkline check`: whether the configuration is valid, and with `--live`, whether its servers work. */
import type { Status } from '../../admin/state/status.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import { checkHosts } from './check-hosts.ts'
import { checkIssuers, issuerLines } from './check-issuers.ts'
import { foundWarnings } from '../setup/found.ts'
import { inline } from '../serve/inline.ts'
import { CommandError, EXIT, load } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { checkLocked } from './lock.ts'
import { printResult } from '../terminal/print.ts'
import type { Line, Paint } from '../terminal/print.ts'
import { faultLines, serverLines, stderrLines, toolsetLines } from '../terminal/table.ts'
import { counted } from '../../values/counted.ts'

export interface CheckOptions {
  readonly live?: boolean
  /** Warnings end with exit code 6. */
  readonly strict?: boolean
  readonly locked?: boolean
  /** Names of hosts, separated by commas. */
  readonly host?: string
}

export const check = async (invocation: Invocation, { live, strict, locked, host }: CheckOptions): Promise<number> => {
  const loaded = await load(invocation)
  if (locked === true) return checkLocked(loaded)
  if (host !== undefined) return checkHosts(loaded, host, live === true)
  const { configuration, discovered } = loaded
  const { files, servers } = configuration
  const ofHosts = discovered === undefined ? [] : foundWarnings(discovered)
  const warnings = [...configuration.warnings, ...ofHosts]
  if (live !== true) {
    const toolsets = configuration.gateway.toolsets.map(({ name }) => name)
    await printResult(loaded, { ok: true, files, servers: servers.map(({ key }) => key), toolsets, warnings }, () => [
      `${discovered === undefined ? files[0] : 'no configuration; the files of hosts'}: ok, ${counted(servers.length, 'server')}`,
      ...warnings.map((warning) => `  warning: ${warning}`),
    ])
    return strictly(strict === true, warnings)
  }
  const [issuers, status] = await Promise.all([checkIssuers(configuration), inline(loaded, (control) => control.status())])
  // Servers that only signed-in callers reach do not fail the check.
  const unwell = status.servers.filter(({ state, callers }) => !callers && state !== 'healthy' && state !== 'degraded')
  const unsigned = unwell.filter(({ needsSignIn }) => needsSignIn).map(({ key }) => key)
  const unreachable = unwell.filter(({ needsSignIn }) => !needsSignIn).map(({ key }) => key)
  const [firstUnsigned] = unsigned
  const { toolsets, collisions } = status
  const failedIssuers = issuers.flatMap(({ issuer, error }) => (error === undefined ? [] : [issuer]))
  const result = {
    ok: unwell.length + collisions.length + failedIssuers.length === 0,
    files,
    servers: status.servers,
    toolsets,
    collisions,
    warnings: [...status.warnings, ...ofHosts],
    ...(issuers.length > 0 && { issuers }),
  }
  await printResult(loaded, result, (paint) => [
    ...issuerLines(issuers, paint),
    ...reportLines(status, paint, invocation.command, loaded.io.stdout.columns),
    ...ofHosts.map((warning) => `  warning: ${warning}`),
  ])
  if (failedIssuers.length > 0)
    throw new CommandError(
      EXIT.unreachable,
      `tokens cannot be checked: ${failedIssuers.join(', ')}; see the reasons above (auth.oauth in ${files[0]})`,
    )
  if (unreachable.length > 0)
    throw new CommandError(
      EXIT.unreachable,
      `not reachable: ${unreachable.join(', ')}; see the reasons above, and correct ${files[0]}`,
    )
  if (firstUnsigned !== undefined)
    throw new CommandError(
      EXIT.authorization,
      `needs sign-in: ${unsigned.join(', ')}; sign in with ${invocation.command('login', firstUnsigned)}`,
    )
  const serverWarnings = status.servers.flatMap((server) => [...server.warnings, ...server.findings.map(({ note }) => note)])
  const toolsetWarnings = toolsets.flatMap(({ findings }) => findings)
  if (collisions.length === 0) return strictly(strict === true, [...warnings, ...serverWarnings, ...toolsetWarnings])
  const what = collisions.length === 1 ? '1 exposed name is not unique' : `${collisions.length} exposed names are not unique`
  throw new CommandError(EXIT.mismatch, `${what}; rename one tool of each (servers.<key>.tools.<name>.name), or filter it out`)
}

/** With `--strict`, warnings are an error. */
const strictly = (isStrict: boolean, warnings: readonly string[]): number => {
  if (!isStrict || warnings.length === 0) return EXIT.ok
  throw new CommandError(EXIT.mismatch, `${counted(warnings.length, 'warning')}, and --strict allows none`)
}

/** The report of a process and its servers, in lines. */
export const reportLines = (
  { servers, toolsets, rates, audit, faults, collisions, warnings, problems }: Status,
  paint: Paint,
  command: CommandPrinter,
  width?: number,
): Line[] => [
  ...faultLines(faults, paint),
  ...serverLines(servers, paint, command, width),
  ...stderrLines(servers, paint),
  ...servers.flatMap(({ key, leftOut }) =>
    leftOut.map(({ kind, name, reason }) => `  left out: ${key} ${kind} "${name}": ${reason}`),
  ),
  ...servers.flatMap(({ key, findings }) =>
    findings.map(({ kind, name, note }) => `  note: ${key} ${kind}${name && ` "${name}"`}: ${note}`),
  ),
  ...servers.flatMap(({ key, warnings }) => warnings.map((warning) => `  ${key}: ${warning}`)),
  ...rates.flatMap(({ option, rate, refused }) =>
    refused === 0 ? [] : [`  ${option} (${rate}): ${counted(refused, 'call')} refused`],
  ),
  ...(audit?.error === undefined ? [] : [paint(`  audit: ${audit.file} cannot be written (${audit.error})`, 'red')]),
  ...(audit === undefined || audit.dropped === 0 ? [] : [paint(`  audit: ${audit.dropped} lines were dropped`, 'red')]),
  ...toolsetLines(toolsets),
  ...toolsets.flatMap(({ findings }) => findings.map((finding) => `  warning: ${finding}`)),
  ...collisions.map((collision) => `  collision: ${collision}`),
  ...warnings.map((warning) => `  warning: ${warning}`),
  ...problems.map(({ place, path, message, remedy }) =>
    paint(`  not applied: ${[place, path].filter(Boolean).join(' ')}: ${message}${remedy && `; ${remedy}`}`, 'red'),
  ),
]

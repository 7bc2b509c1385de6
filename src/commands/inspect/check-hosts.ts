/** `trunkline check --host`: the catalog against the known limits of hosts. */
import type { Lint } from '../../admin/catalog/lint.ts'
import type { HostFinding } from '../../catalog/lint/host-lint.ts'
import { HOST_LIMITS } from '../../catalog/lint/host-limits.ts'
import { knownLimits } from './as-host.ts'
import { storedLint } from '../setup/stored-lint.ts'
import { inline, runningProcess } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Loaded } from '../terminal/io.ts'
import { printResult } from '../terminal/print.ts'
import { paintedRows } from '../terminal/table.ts'
import type { PaintedRow } from '../terminal/table.ts'
import { counted } from '../../values/counted.ts'

/** `list`: hosts separated by commas, or `all`. Uses the lists of the running process, else the stored ones; `live` starts servers. */
export const checkHosts = async (loaded: Loaded, list: string, live: boolean): Promise<number> => {
  const hosts = hostsOf(list)
  const remote = live ? undefined : await runningProcess(loaded)
  const lint = live
    ? await inline(loaded, (control) => control.lint(hosts))
    : remote === undefined
      ? storedLint(loaded, hosts)
      : await remote.lint(hosts)
  const broken = lint.findings.filter(({ consequence }) => consequence === 'breaks')
  await printResult(loaded, { ok: broken.length === 0, hosts, ...lint }, (paint) => [
    ...paintedRows(lint.findings.map(rowOf), paint),
    ...lint.unknown.map((key) => `  ${key}: its lists are not known yet; use --live`),
    summary(hosts, lint),
  ])
  if (broken.length === 0) return EXIT.ok
  const labels = [...new Set(broken.map(({ host }) => labelOf(host)))].join(', ')
  throw new CommandError(EXIT.mismatch, `${counted(broken.length, 'thing')} would not work in ${labels}`)
}

const summary = (hosts: readonly string[], { findings, tools }: Lint): string => {
  const fine = hosts.filter((host) => !findings.some((finding) => finding.host === host))
  return `${counted(tools, 'tool')}${fine.length === 0 ? '' : `: ok in ${fine.map(labelOf).join(', ')}`}`
}

const labelOf = (host: string): string => HOST_LIMITS[host]?.label ?? host

const rowOf = ({ host, toolset, tool, message, remedy, consequence }: HostFinding): PaintedRow => ({
  cells: [host, toolset && `/${toolset}`, tool, message, `→ ${remedy}`],
  colour: consequence === 'breaks' ? 'red' : 'yellow',
})

const hostsOf = (list: string): string[] => {
  const named = list
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)
  if (named.length === 0) throw new CommandError(EXIT.usage, '--host takes names of hosts, such as cursor,vscode, or all')
  const known = named.filter((word) => word !== 'all').map(knownLimits)
  return named.includes('all') ? Object.keys(HOST_LIMITS) : [...new Set(known)]
}

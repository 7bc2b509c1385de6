/** The output of `up` without a configuration: the servers of hosts, problems, and the next commands. */
import type { RuntimeEnvironment } from '../../config/runtime-environment.ts'
import type { Discovered } from '../../host-files/discovered.ts'
import { nameOf } from '../../host-files/found.ts'
import { HOSTS } from '../../host-files/hosts.ts'
import type { HostName } from '../../host-files/hosts.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import { operatorCommand } from '../../operator-command.ts'
import type { Line, Paint } from '../terminal/print.ts'
import { columns } from '../terminal/table.ts'
import { counted } from '../../values/counted.ts'

/** `found 9 servers in Claude Code, Cursor (read-only; trunkline init saves them)`, and a line per file of a host. */
export const foundHead = (discovered: Discovered, context: Pick<RuntimeEnvironment, 'cwd' | 'home'>): Line[] => {
  const { plan, found, from } = discovered
  const on = plan.servers.filter(({ draft }) => draft['enabled'] !== false)
  const rows = found.flatMap(({ host, scope, file, servers }) => {
    const keys = on
      .filter(({ from: places }) => places.some((one) => one.file === file && one.scope === scope))
      .map(({ key }) => key)
    return servers.length === 0
      ? []
      : [[HOSTS[host].label, nameOf(file, context), keys.length === 0 ? 'all disabled' : keys.join(', ')]]
  })
  const where = from.length > 0 ? from.join(', ') : labelsOf(on.flatMap(({ from: places }) => places.map(({ host }) => host)))
  return [
    `  found ${counted(on.length, 'server')} in ${where} (read-only; ${operatorCommand([], ...savingCommand(discovered))} saves them)`,
    ...columns(rows).map((line) => `    ${line}`),
  ]
}

/** The command that saves the servers. */
const savingCommand = ({ from }: Discovered): readonly string[] => {
  const file = from.find((word) => !Object.hasOwn(HOSTS, word))
  if (from.length === 0) return ['init']
  return file === undefined ? ['import', ...from] : ['adapt', file, '--write']
}

/** Servers and files of hosts that cannot be used, variables that are not set, and other warnings. */
export const foundWarnings = ({ plan, found, leftOut }: Discovered): readonly string[] => [
  ...[...leftOut].map(([key, reason]) => `${reason}; server "${key}" is left out`),
  ...found.flatMap(({ host, problems, warnings }) => [...problems, ...warnings].map((text) => `${HOSTS[host].label}: ${text}`)),
  ...[...plan.unset].map(([name, keys]) => `${name} is not set, and ${keys.join(', ')} needs it: set it in the environment`),
  ...plan.warnings,
]

export const foundFoot = (discovered: Discovered, paint: Paint, command: CommandPrinter): Line[] => {
  const { plan, found, leftOut } = discovered
  const off = plan.servers.filter(({ draft }) => draft['enabled'] === false)
  const connected = found.filter(({ isConnected }) => isConnected).map(({ host }) => host)
  const open = [...new Set(found.map(({ host }) => host))].filter((host) => !connected.includes(host))
  const mark = (text: string, colour: 'red' | 'yellow', rest: string): Line => ['  ', paint(text, colour), ` ${rest}`]
  return [
    ...[...leftOut].map(([key, reason]) => mark('✗', 'red', `${key}  ${reason}`)),
    ...found.flatMap(({ host, problems }) => problems.map((text) => mark('✗', 'red', `${HOSTS[host].label}: ${text}`))),
    ...found.flatMap(({ host, warnings }) => warnings.map((text) => mark('▲', 'yellow', `${HOSTS[host].label}: ${text}`))),
    ...[...plan.unset].map(([name, keys]) =>
      mark('▲', 'yellow', `${name} is not set, and ${keys.join(', ')} needs it: set it in the environment`),
    ),
    ...plan.warnings.map((text) => mark('▲', 'yellow', text)),
    ...(off.length === 0 ? [] : [`  ○ disabled in the host: ${off.map(({ key }) => key).join(', ')}`]),
    ...(connected.length === 0 ? [] : [`  already connected: ${labelsOf(connected)}`]),
    `  Next: ${[...open.map((host) => command('connect', host)).slice(0, 3), command(...savingCommand(discovered))].join(' | ')}`,
  ]
}

const labelsOf = (hosts: readonly HostName[]): string => [...new Set(hosts)].map((host) => HOSTS[host].label).join(', ')

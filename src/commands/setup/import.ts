/** `trunkline init` and `import [HOST…]`: writes the servers of hosts to `trunkline.yaml`, and their secrets to `.env`. */
import { dirname } from 'node:path'
import { suggest } from '../../config/syntax/nearest-key.ts'
import type { RuntimeEnvironment } from '../../config/runtime-environment.ts'
import { ChangeError } from '../../host-files/edit/change.ts'
import { diffLines } from '../../host-files/edit/diff.ts'
import { findServers, nameOf } from '../../host-files/found.ts'
import type { FoundFile } from '../../host-files/found.ts'
import { HOSTS } from '../../host-files/hosts.ts'
import type { HostName } from '../../host-files/hosts.ts'
import { planImport, valuesOf } from '../../host-files/import.ts'
import { readIncluded } from '../../host-files/included.ts'
import type { ImportPlan } from '../../host-files/import.ts'
import { isSeenByGit, readOurFile, updateOurFile, withServers } from '../../host-files/our-file.ts'
import type { Addition, OurFile } from '../../host-files/our-file.ts'
import { usableIn } from '../../host-files/usable.ts'
import { InstallError } from '../../install/inputs.ts'
import { keysOf } from '../../values/typed-keys.ts'
import { canAsk, confirm } from '../terminal/ask.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Io } from '../terminal/io.ts'
import { printJson, printLines, printResult, remarkLines } from '../terminal/print.ts'
import type { Line } from '../terminal/print.ts'
import { columns } from '../terminal/table.ts'
import { counted } from '../../values/counted.ts'
import { operatorCommand } from '../../operator-command.ts'

/** The input of a command that writes a configuration. */
export interface Writing {
  /** Absolute; may not exist yet. */
  readonly file: string
  /** The arguments of `-c`, for messages. */
  readonly named: readonly string[]
  readonly context: RuntimeEnvironment
  readonly io: Io
  readonly json: boolean
}

export interface ImportOptions {
  readonly dryRun?: boolean
  readonly yes?: boolean
}

export const importServers = async (writing: Writing, hosts: readonly string[], options: ImportOptions): Promise<number> => {
  const words = hosts.map(knownHost)
  return saveServers(writing, await findServers(writing.context, words.length === 0 ? undefined : words), options)
}

/** Writes the servers that are not in the configuration yet, and their secrets into `.env`. Servers that it would refuse are reported. */
export const saveServers = async (
  writing: Writing,
  all: readonly FoundFile[],
  { dryRun = false, yes = false }: ImportOptions,
): Promise<number> => {
  const { file, named, context, io, json } = writing
  const found = all.map((one) => usableIn(one, context))
  const included = await readIncluded(file, named.slice(1), context)
  const planFor = (ours: OurFile): ImportPlan =>
    planImport(
      found.flatMap(({ servers }) => servers),
      { servers: { ...included.servers, ...ours.servers }, env: context.env, envFile: ours.values, folder: dirname(file) },
    )
  const ours = await refuseChangeErrors(() => readOurFile(file, context))
  const plan = planFor(ours)
  io.redactor.learn([...plan.secrets.values()])
  const shown = nameOf(file, context)
  if (plan.servers.length === 0) {
    await printResult(writing, summaryOf(plan, found, file, false), () => [
      ...problemLines(found),
      nothingNew(plan, found, shown, named),
    ])
    if (plan.known.length > 0 || found.every(({ problems }) => problems.length === 0)) return EXIT.ok
    throw new CommandError(EXIT.config, 'nothing can be imported; see the reasons above')
  }
  const isNew = ours.text === undefined
  const isWritten = !dryRun && (isNew || yes || !canAsk(io) || (await isConfirmed(ours, plan, shown, io)))
  if (isWritten)
    await refuseChangeErrors(() =>
      updateOurFile(file, context, (now) => {
        const latest = planFor(now)
        const values = valuesOf(latest)
        return { text: withServers(now, { servers: latest.servers, values }), values }
      }),
    )
  if (json) {
    await printJson(io, summaryOf(plan, found, file, isWritten))
    return EXIT.ok
  }
  const command = (...words: readonly string[]): string => operatorCommand(named, ...words)
  const lines: Line[] = [...problemLines(found), ...serverRows(plan), ...plan.warnings.map((text) => `  ▲ ${text}`)]
  if (dryRun) {
    const text = await textWith(ours, { servers: plan.servers, values: valuesOf(plan) })
    lines.push(`  would write ${shown}:`, ...diffLines(ours.text ?? '', text).map((line) => `  ${line}`))
  } else if (isWritten) {
    lines.push(
      `  wrote ${shown}${plan.secrets.size === 0 ? '' : ` and ${counted(plan.secrets.size, 'secret')} to ${nameOf(ours.envFile, context)} (0600)`}`,
    )
    for (const [name, keys] of plan.unset)
      lines.push(`  ▲ ${name} is not set, and ${keys.join(', ')} needs it: write it into ${nameOf(ours.envFile, context)}`)
    if (plan.secrets.size > 0 && (await isSeenByGit(ours.envFile)))
      lines.push(`  ▲ ${nameOf(ours.envFile, context)} is not in .gitignore: add it before you commit`)
    lines.push(`  Next: ${command('check')}, ${command('up')}, ${command('connect', found[0]?.host ?? 'claude-code')}`)
  } else lines.push('  nothing was written')
  await printLines(io, lines)
  return EXIT.ok
}

/** The text that would be written. */
export const textWith = (ours: OurFile, addition: Addition): Promise<string> =>
  refuseChangeErrors(async () => withServers(ours, addition))

const isConfirmed = async (ours: OurFile, plan: ImportPlan, shown: string, io: Io): Promise<boolean> => {
  remarkLines(io, diffLines(ours.text ?? '', await textWith(ours, { servers: plan.servers, values: valuesOf(plan) })))
  return confirm(io, `Write ${shown}?`, true)
}

const serverRows = ({ servers, known }: ImportPlan): Line[] => {
  const rows = [
    ...servers.map(({ key, draft, from }) => [
      draft['enabled'] === false ? '○' : '●',
      key,
      draft['url'] === undefined ? 'stdio' : 'http',
      from
        .map(({ host }) => HOSTS[host].label)
        .filter((label, at, all) => all.indexOf(label) === at)
        .join(', '),
      draft['enabled'] === false ? 'disabled' : '',
    ]),
    ...known.map(({ key, from }) => ['·', key, '', HOSTS[from.host].label, 'is already in the configuration']),
  ]
  return columns(rows).map((line) => `  ${line}`)
}

const problemLines = (found: readonly FoundFile[]): Line[] =>
  found.flatMap(({ host, problems, warnings }) => [
    ...problems.map((text) => `  ✗ ${HOSTS[host].label}: ${text}`),
    ...warnings.map((text) => `  ▲ ${HOSTS[host].label}: ${text}`),
  ])

const nothingNew = ({ known }: ImportPlan, found: readonly FoundFile[], shown: string, named: readonly string[]): string => {
  if (known.length > 0) return `  ${shown} already contains every server that was found`
  const looked = found.length === 0 ? 'no file of a host was found' : `no server in ${found.map(({ file }) => file).join(', ')}`
  return `  ${looked}; add one: ${operatorCommand(named, 'add', 'NAME')} URL, or ${operatorCommand(named, 'add', 'NAME')} -- COMMAND`
}

const summaryOf = (plan: ImportPlan, found: readonly FoundFile[], file: string, written: boolean): object => ({
  file,
  written,
  servers: plan.servers.map(({ key, draft, from }) => ({
    key,
    entry: draft,
    from: from.map(({ host, scope, place, name }) => ({ host, scope, place, name })),
  })),
  known: plan.known.map(({ key, from }) => ({ key, host: from.host, place: from.place })),
  secrets: [...plan.secrets.keys()],
  unset: [...plan.unset.keys()],
  problems: found.flatMap(({ problems }) => problems),
  warnings: [...plan.warnings, ...found.flatMap(({ warnings }) => warnings)],
})

/** The host of this name; throws a usage error with a suggestion. */
export const knownHost = (word: string): HostName => {
  const host = keysOf(HOSTS).find((name) => name === word)
  if (host !== undefined) return host
  throw new CommandError(EXIT.usage, `no host "${word}" is known; ${suggest(word, Object.keys(HOSTS))}`)
}

/** Turns a `ChangeError`, and an `InstallError`, into an error of the command. */
export const refuseChangeErrors = async <T>(change: () => Promise<T>): Promise<T> => {
  try {
    return await change()
  } catch (error) {
    const isKnown = error instanceof ChangeError || error instanceof InstallError
    throw isKnown ? new CommandError(EXIT.config, error.message) : error
  }
}

/** `trunkline lock`, `diff` and `check --locked`: the definitions that servers offer, and the approved ones. */
import { randomBytes } from 'node:crypto'
import { readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import type { Control } from '../../admin/control.ts'
import type { UnapprovedChange, OfferedServer } from '../../admin/catalog/offered.ts'
import type { ServerStatus } from '../../admin/state/server-status.ts'
import { asError } from '../../values/as-error.ts'
import { changedMembers, diffDefinitions } from '../../catalog/lock/lock-diff.ts'
import { printLock } from '../../catalog/lock/lock-text.ts'
import { compareLocked } from '../../catalog/lock/lock.ts'
import type { LockChange, Locked, LockKind, ServerLock } from '../../catalog/lock/lock.ts'
import type { LockFile } from '../../config/options.ts'
import { ConfigError } from '../../config/syntax/problems.ts'
import { writeThrough } from '../../host-files/edit/change.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import { runningProcess, withGateway } from '../serve/inline.ts'
import { CommandError, EXIT, load } from '../terminal/io.ts'
import type { Invocation, Loaded } from '../terminal/io.ts'
import { printResult } from '../terminal/print.ts'
import type { Line, Paint, Painted } from '../terminal/print.ts'
import { unknownName } from '../terminal/unknown-name.ts'
import { counted } from '../../values/counted.ts'

/** The entries to be written: those of these servers (of all if none is named), or those of one name. */
export interface LockChoice {
  readonly servers: readonly string[]
  readonly name?: string
  /** Also the lists for hosts with MCP Apps. */
  readonly apps: boolean
}

/** Writes the lock file if it differs, and reloads the running process. `again`: reads the configuration with its lock. */
export const lock = async (invocation: Invocation, choice: LockChoice, again: Invocation['read']): Promise<number> => {
  const file = lockFileOf(await load(invocation))
  const known = await knownLock(file, choice, again)
  const offered = await withGateway(invocation, (control) => offeredOf(control, choice, known, invocation.command))
  const servers = compose(known, offered, choice, file.covers)
  const changes = compareServers(known, servers)
  const isWritten = await writeChanged(file.file, printLock(servers))
  const count = servers.reduce((sum, { entries, apps }) => sum + entries.length + apps.length, 0)
  await printResult(invocation, { file: file.file, written: isWritten, changes: changes.map(outline) }, (paint) => [
    ...changes.map((change) => changeLine(change, paint)),
    ...offered.filter(({ lock }) => lock === undefined).map(notLocked),
    `${isWritten ? 'wrote' : 'nothing changed in'} ${file.name}: ${counted(servers.length, 'server')}, ${counted(count, 'definition')}`,
  ])
  const remote = isWritten ? await runningProcess(invocation) : undefined
  const end = await remote?.reload()
  if (end?.kind === 'refused') throw new ConfigError(end.problems)
  return EXIT.ok
}

/** Whether servers offer what the lock file contains. Exit code 6: they do not; 4: some could not be read. */
export const checkLocked = async (loaded: Loaded): Promise<number> => {
  const { command } = loaded
  const file = lockFileOf(loaded)
  if (file.servers === undefined) throw noLock(file, command)
  const offered = await withGateway(loaded, (control) =>
    control.offered([], file.servers?.some(({ apps }) => apps.length > 0) === true),
  )
  const servers = covered(
    offered.flatMap(({ lock }) => (lock === undefined ? [] : [lock])),
    file.covers,
  )
  const lost = offered.filter((server) => server.lock === undefined && !isLeftOut(server, file.servers))
  const leftOut = offered.filter((server) => isLeftOut(server, file.servers))
  const known = file.servers.filter(({ key }) => !lost.some((server) => server.key === key))
  const changes = compareServers(covered(known, file.covers), servers)
  const result = {
    ok: changes.length + lost.length === 0,
    file: file.file,
    changes: changes.map(outline),
    lost: lost.map(({ key, reason }) => ({ key, reason })),
  }
  await printResult(loaded, result, (paint) => [
    ...changes.flatMap((change) => changeLines(change, paint)),
    ...lost.map((server) => `${server.key}: ${server.reason}`),
    ...leftOut.map(notLocked),
    ...(result.ok ? [`${file.name}: ok for ${counted(servers.length, 'server')}`] : []),
  ])
  if (changes.length > 0)
    throw new CommandError(EXIT.mismatch, `differences from ${file.name}: ${changes.length}; to approve them: ${command('lock')}`)
  if (lost.length > 0) throw new CommandError(EXIT.unreachable, `not reachable: ${lost.map(({ key }) => key).join(', ')}`)
  return EXIT.ok
}

/**
 * How a definition differs from the approved one; without a name, all that differ. `peek`: reads the configuration without its secrets; one
 * that cannot be read any more may still run.
 */
export const diff = async (invocation: Invocation, name: string | undefined, peek: Invocation['read']): Promise<number> => {
  const { command } = invocation
  const file = await peek().then(
    ({ configuration }) => configuration.lock,
    () => undefined,
  )
  if (file !== undefined && file.servers === undefined) throw noLock(file, command)
  const { all, servers, owners } = await withGateway(invocation, async (control) => {
    const [all, { servers }] = [await control.changes(), await control.status()]
    return { all, servers, owners: await ownersOf(control, name, all, servers) }
  })
  const unread = servers.filter(isUnread)
  const missing = `not reachable: ${unread.map(({ key }) => key).join(', ')}`
  if (owners.length === 0 && name !== undefined)
    throw unread.length === 0
      ? unknownName(name, [], command)
      : new CommandError(EXIT.unreachable, `no server that was reached has "${name}"; ${missing}; see ${command('ps')}`)
  const found = all.filter((change) => name === undefined || isNamed(change, name))
  const own = unread.filter(({ key }) => owners.includes(key))
  await printResult(invocation, found.map(outline), (paint) => [
    ...found.flatMap((change) => changeLines(change, paint)),
    ...own.map(({ key, reason = 'no answer yet' }) => `${key}: ${reason}`),
    ...(found.length + own.length === 0 ? [`${name ?? 'every definition'} is as approved`] : []),
  ])
  if (own.length > 0) throw new CommandError(EXIT.unreachable, `not reachable: ${own.map(({ key }) => key).join(', ')}`)
  return EXIT.ok
}

/** Whether the current definitions of the server are not known. One that only signed-in callers can list has no common ones. */
const isUnread = ({ state, revision, callers }: ServerStatus): boolean =>
  callers === undefined && (state === 'down' || state === 'failed' || revision === undefined)

const noLock = ({ name }: LockFile, command: CommandPrinter): CommandError =>
  new CommandError(EXIT.mismatch, `${name} does not exist; write it and add it to git: ${command('lock')}`)

/** The keys of the servers that have something of this name: an offered entry, a changed one, or their key. All without a name. */
const ownersOf = async (
  control: Control,
  name: string | undefined,
  changes: readonly UnapprovedChange[],
  servers: readonly ServerStatus[],
): Promise<readonly string[]> => {
  if (name === undefined) return servers.map(({ key }) => key)
  const end = await control.why(name, undefined)
  return [
    ...servers.filter(({ key }) => key === name).map(({ key }) => key),
    ...changes.filter((change) => isNamed(change, name)).map(({ server }) => server),
    ...(end.kind === 'known' ? end.all.map(({ server }) => server) : []),
  ]
}

const isNamed = ({ exposed, name: original, server }: UnapprovedChange, name: string): boolean =>
  [exposed, original, server, `${server}__${original}`].includes(name)

/** The lock file that the configuration names. */
export const lockFileOf = ({ configuration, files }: Loaded): LockFile => {
  if (configuration.lock !== undefined) return configuration.lock
  throw new CommandError(EXIT.config, `no lock file is configured; write into ${files[0]}: lock: { file: ./trunkline.lock }`)
}

/** The servers in the file now. A file that is kept in part must be valid; one that is replaced may have any content. */
const knownLock = async (file: LockFile, { servers }: LockChoice, again: Invocation['read']): Promise<readonly ServerLock[]> => {
  try {
    return (await again()).configuration.lock?.servers ?? []
  } catch (error) {
    const isOfLock = error instanceof ConfigError && error.problems.every(({ place }) => place.startsWith(`${file.name}:`))
    if (isOfLock ? servers.length > 0 : !isMissing(error)) throw error
    return []
  }
}

/** Whether the only problem is that the lock file does not exist yet, under `strict`. */
const isMissing = (error: unknown): boolean =>
  error instanceof ConfigError && error.problems.every(({ path }) => path === 'lock.file')

/** Whether the server is in no lock yet and only signed-in callers can list it: it is reported, and is not an error. */
const isLeftOut = ({ key, isForCallers }: OfferedServer, known: readonly ServerLock[] = []): boolean =>
  isForCallers && !known.some((server) => server.key === key)

const notLocked = ({ key }: OfferedServer): string => `${key}: is not locked, since each caller signs in separately`

const offeredOf = async (
  control: Control,
  { servers, apps }: LockChoice,
  known: readonly ServerLock[],
  command: CommandPrinter,
): Promise<readonly OfferedServer[]> => {
  const offered = await control.offered(servers, apps)
  const unknown = servers.find((key) => !offered.some((server) => server.key === key))
  if (unknown !== undefined)
    throw new CommandError(EXIT.usage, `no server "${unknown}" is running; see all with: ${command('ps')}`)
  const lost = offered.filter((server) => server.lock === undefined && (servers.length > 0 || !isLeftOut(server, known)))
  if (lost.length === 0) return offered
  const reasons = lost.map(({ key, reason }) => `${key}: ${reason.split('\n', 1)[0]}`).join('; ')
  const fine = offered.filter(({ lock }) => lock !== undefined).map(({ key }) => key)
  const remedy = fine.length === 0 ? '' : `; lock the others with: ${command('lock', ...fine)}`
  throw new CommandError(EXIT.unreachable, `nothing was written, ${reasons}${remedy}`)
}

const compose = (
  known: readonly ServerLock[],
  offered: readonly OfferedServer[],
  { servers, name, apps }: LockChoice,
  covers: readonly LockKind[],
): ServerLock[] => {
  const fresh = offered.flatMap(({ lock }) => (lock === undefined ? [] : [lock]))
  const taken = covered(fresh, covers).map((server): ServerLock => {
    const before = known.find(({ key }) => key === server.key)
    const isTaken = (entry: Locked): boolean => name === undefined || entry.name === name
    const merge = (old: readonly Locked[] = [], now: readonly Locked[]): readonly Locked[] => [
      ...old.filter((entry) => !isTaken(entry)),
      ...now.filter(isTaken),
    ]
    return {
      key: server.key,
      entries: merge(before?.entries, server.entries),
      apps: apps ? merge(before?.apps, server.apps) : (before?.apps ?? []),
    }
  })
  return servers.length === 0 ? taken : [...known.filter(({ key }) => !taken.some((server) => server.key === key)), ...taken]
}

const covered = (servers: readonly ServerLock[], covers: readonly LockKind[]): ServerLock[] => {
  const only = (entries: readonly Locked[]): Locked[] => entries.filter(({ kind }) => covers.includes(kind))
  return servers.map(({ key, entries, apps }) => ({ key, entries: only(entries), apps: only(apps) }))
}

/** A change, its server, and the exposed name where it is known. */
type ServerChange = LockChange & { readonly server: string; readonly exposed?: string }

const compareServers = (before: readonly ServerLock[], after: readonly ServerLock[]): ServerChange[] => {
  const keys = [...new Set([...before, ...after].map(({ key }) => key))].sort()
  const of = (servers: readonly ServerLock[], key: string): readonly Locked[] => {
    const found = servers.find((server) => server.key === key)
    return found === undefined ? [] : [...found.entries, ...found.apps]
  }
  return keys.flatMap((server) => compareLocked(of(before, server), of(after, server)).map((change) => ({ ...change, server })))
}

const writeChanged = async (file: string, text: string): Promise<boolean> => {
  const target = await realpath(file).catch(() => file)
  if ((await readFile(target, 'utf8').catch(() => undefined)) === text) return false
  const mode = ((await stat(target).catch(() => undefined))?.mode ?? 0o644) & 0o777
  const temporary = `${target}.${randomBytes(6).toString('hex')}`
  try {
    await writeThrough(temporary, Buffer.from(text), mode)
    await rename(temporary, target)
    return true
  } catch (error) {
    await rm(temporary, { force: true })
    throw new CommandError(EXIT.usage, `${file} cannot be written (${asError(error).code}); check its folder`)
  }
}

export const SINGULAR: Readonly<Record<LockKind, string>> = {
  instructions: 'instructions',
  tools: 'tool',
  prompts: 'prompt',
  resources: 'resource',
  templates: 'template',
}

/** `~ files tool write  description changed` */
const changeLine = ({ server, exposed, kind, name, from, to }: ServerChange, paint: Paint): string | Painted => {
  const subject = [exposed ?? server, SINGULAR[kind], exposed === undefined ? name : ''].filter(Boolean).join(' ')
  const [sign, colour] =
    to === undefined ? (['-', 'red'] as const) : from === undefined ? (['+', 'green'] as const) : (['~', 'yellow'] as const)
  return paint(`${sign} ${subject}  ${changedWords({ from, to })}`, colour)
}

/** `description changed` */
export const changedWords = ({ from, to }: Pick<LockChange, 'from' | 'to'>): string => {
  if (to === undefined) return 'is no longer offered'
  if (from === undefined) return 'is new'
  return `${from.definition === '' ? 'its definition' : changedMembers(from, to).join(', ')} changed`
}

/** The change, followed by the lines that differ. */
const changeLines = (change: ServerChange, paint: Paint): Line[] => {
  const { from, to } = change
  if (from?.definition === '') return [changeLine(change, paint), '    only the digest of the old text was kept']
  const lines = from !== undefined && to !== undefined ? diffDefinitions(from, to) : []
  return [changeLine(change, paint), ...lines.map((line): Line => ['    ', coloured(line, paint)])]
}

const coloured = (line: string, paint: Paint): string | Painted =>
  line.startsWith('+') ? paint(line, 'green') : line.startsWith('-') ? paint(line, 'red') : line

const outline = ({ server, exposed, kind, name, from, to }: ServerChange) => ({
  server,
  kind,
  name,
  ...(exposed !== undefined && { exposed }),
  from: from?.digest,
  to: to?.digest,
  ...(from !== undefined && to !== undefined && from.definition !== '' && { diff: diffDefinitions(from, to) }),
})

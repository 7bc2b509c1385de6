/** `trunkline connect HOST` and `disconnect HOST`: shows the difference, makes a backup, and writes the file of the host or undoes that. */
import { stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { connectAdmin } from '../../admin/socket/client.ts'
import type { Status } from '../../admin/state/status.ts'
import { asError } from '../../values/as-error.ts'
import type { HostClientId } from '../../auth/inbound/verify/inbound-options.ts'
import { HOST_LIMITS } from '../../catalog/lint/host-limits.ts'
import { userConfigurationPath } from '../../config/read/find.ts'
import { stateRoot } from '../../config/read/folders.ts'
import { OUR_NAME } from '../../config/read/host-file.ts'
import { sessionFolder } from '../../config/runtime-environment.ts'
import { formatDuration, parseDuration } from '../../config/schema/units.ts'
import { ChangeError } from '../../host-files/edit/change.ts'
import { HostConnection } from '../../host-files/connection.ts'
import type { Change } from '../../host-files/connection.ts'
import { diffLines } from '../../host-files/edit/diff.ts'
import { findServers, nameOf, readPlace } from '../../host-files/found.ts'
import { entryFor, HOSTS, placesOf } from '../../host-files/hosts.ts'
import type { HostEntry, HostPlace, Scope, Target, HostName } from '../../host-files/hosts.ts'
import { usableIn } from '../../host-files/usable.ts'
import { editedText } from '../../host-files/sample.ts'
import { operatorCommand } from '../../operator-command.ts'
import { keysOf } from '../../values/typed-keys.ts'
import { canAsk, confirm } from '../terminal/ask.ts'
import { importServers, knownHost } from './import.ts'
import type { Writing } from './import.ts'
import { firstRequest, firstRequestLines } from './first-request.ts'
import type { FirstRequest } from './first-request.ts'
import { CommandError, EXIT, load } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printJson, printLines, printText, remarkLines } from '../terminal/print.ts'
import type { Line } from '../terminal/print.ts'
import { unknownToolset } from '../terminal/unknown-name.ts'

export interface ConnectOptions {
  readonly all?: boolean
  readonly scope?: string
  readonly toolset?: string
  readonly http?: boolean
  readonly stdio?: boolean
  readonly tokenEnv?: string
  readonly print?: boolean
  readonly link?: boolean
  readonly move?: boolean
  /** A duration; `false`: do not wait. */
  readonly wait?: string | boolean
  readonly yes?: boolean
}

/** The configuration for a host to be connected. */
export interface Connecting extends Writing {
  /** Each `-c` of the process that the host starts; empty: it finds the configuration without. */
  readonly configurations: readonly string[]
  /** For requests to a process of the same configuration. */
  readonly invocation: Invocation
  /** Found again, after a configuration was written. */
  readonly again: () => Promise<Connecting>
}

const SCOPES: readonly Scope[] = ['user', 'local', 'project']

export const connect = async (connecting: Connecting, hosts: readonly string[], options: ConnectOptions): Promise<number> => {
  const { io, json } = connecting
  const chosen = await chosenHosts(connecting, hosts, options)
  await refuseUnknownToolset(connecting, options)
  if (options.move !== true) await refuseNoFile(connecting)
  const waitMs = waitOf(options, io)
  const sinceMs = Date.now()
  const reports: Report[] = []
  const failures: string[] = []
  for (const host of chosen) {
    try {
      const entry = await entryOf(connecting, host, options)
      const place = await placeFor(host, connecting, options)
      if (options.link === true) {
        const link = HOSTS[host].link?.(OUR_NAME, entry)
        if (link === undefined) throw new ChangeError('has no install links; remove --link')
        reports.push({ host, link })
        if (!json) await printLines(io, [link])
      } else if (options.print === true) {
        const text = editedText(place, entry)
        reports.push({ host, file: place.path, at: place.at, entry })
        if (!json) await printText(io, text)
      } else reports.push(await connectOne(connecting, host, place, options))
    } catch (error) {
      if (!(error instanceof ChangeError)) throw error
      failures.push(`${HOSTS[host].label}: ${error.message}`)
    }
  }
  const { clients = [] } = options.http === true ? ((await runningStatus(connecting))?.oauth ?? {}) : {}
  if (clients.length > 0 && !json && reports.length > 0) remarkLines(io, clientLines(clients))
  const firstRequests = await awaitHosts(await connecting.again(), reports, sinceMs, waitMs)
  if (json) {
    const hosts = reports.map((report) => ({ ...report, firstRequest: firstRequests.get(report.host) }))
    await printJson(io, { hosts, ...(clients.length > 0 && { clients }) })
  }
  if (failures.length > 0) throw new CommandError(EXIT.config, failures.join('\n'))
  if (chosen.length === 0 && !json) await printLines(io, [`  no host was found; known: ${Object.keys(HOSTS).join(', ')}`])
  return EXIT.ok
}

/** The result for one host in `--json`; `changed` is absent if its file was not read. */
interface Report {
  readonly host: HostName
  readonly changed?: boolean
  readonly file?: string
  /** Steps to the servers in that file. */
  readonly at?: readonly string[]
  readonly entry?: HostEntry
  readonly link?: string
  readonly backup?: string
  /** Names of the servers that were moved from it to our configuration. */
  readonly moved?: readonly string[]
}

/** Time for a person to find and restart the host. */
const WAIT_MS = 120_000

/** `undefined`: do not wait. */
const waitOf = ({ wait, print, link }: ConnectOptions, io: Connecting['io']): number | undefined => {
  if (print === true || link === true || wait === false) return undefined
  if (typeof wait !== 'string') return canAsk(io) ? WAIT_MS : undefined
  const waitMs = parseDuration(wait)
  if (waitMs === undefined) throw new CommandError(EXIT.usage, `--wait takes a duration such as 2m, got "${wait}"`)
  return waitMs
}

/** Waits for the first request of each host, and prints it; the result is by host. */
const awaitHosts = async (
  { invocation, io, json }: Connecting,
  reports: readonly Report[],
  sinceMs: number,
  waitMs: number | undefined,
): Promise<ReadonlyMap<string, FirstRequest>> => {
  const found = new Map<string, FirstRequest>()
  const hosts = reports.flatMap(({ host, changed }) => (changed === undefined ? [] : [host]))
  if (waitMs === undefined || hosts.length === 0) return found
  const loaded = await load(invocation).catch((error: unknown) => {
    remarkLines(io, [`  ▲ nothing can be served yet (see ${invocation.command('check')}): ${firstLine(error)}`])
  })
  if (loaded === undefined) return found
  const names = hosts.map((host) => HOSTS[host].label).join(', ')
  remarkLines(io, [`  waiting for the first request of ${names}, at most ${formatDuration(waitMs)}; Ctrl-C stops waiting`])
  const waiting = hosts.map(async (host) => {
    const request = await firstRequest(loaded, host, { sinceMs, waitMs, signal: io.interrupted })
    if (request !== undefined) found.set(host, request)
    if (json) return
    if (request !== undefined) await printLines(io, firstRequestLines(host, request, invocation.command))
    else await printLines(io, [`  ○ ${HOSTS[host].label} has not connected yet; ${HOSTS[host].afterwards}`])
  })
  await Promise.all(waiting)
  return found
}

/** Most hosts register themselves; others ask a person for a client id. */
const clientLines = (clients: readonly HostClientId[]): readonly string[] => [
  '  client ids, for a host that asks for one when it signs in:',
  ...clients.map(({ id, name }) => `    ${id}  ${name ?? 'any host'}`),
]

const runningStatus = async ({ invocation }: Connecting): Promise<Status | undefined> =>
  (await connectAdmin(invocation.socket, invocation.io.interrupted))?.status()

const firstLine = (error: unknown): string => asError(error).message.split('\n', 1)[0] ?? ''

/** A host would start a process that ends at once. The content may be wrong: its variables may be those of the host. */
const refuseNoFile = async ({ named, context }: Connecting): Promise<void> => {
  for (const name of named) {
    const found = await stat(resolve(context.cwd, name)).catch(() => undefined)
    if (found?.isFile() === true) continue
    const reason = found === undefined ? 'does not exist' : found.isDirectory() ? 'is a folder' : 'is not a file'
    throw new CommandError(EXIT.config, `${name} ${reason}; name a file with -c FILE`)
  }
}

/** A host that is connected to a toolset that does not exist gets nothing. A configuration that cannot be read is reported later. */
const refuseUnknownToolset = async ({ invocation }: Connecting, { toolset }: ConnectOptions): Promise<void> => {
  if (toolset === undefined) return
  const loaded = await load(invocation).catch(() => undefined)
  if (loaded?.configuration.gateway.toolsets.some(({ name }) => name === toolset) === false)
    throw unknownToolset(toolset, invocation.command)
}

/** Throws `ChangeError` if the host does not support the target. */
const entryOf = async (connecting: Connecting, host: HostName, options: ConnectOptions): Promise<HostEntry> => {
  const entry = entryFor(HOSTS[host], await targetFor(connecting, host, options))
  if (entry === undefined) throw new ChangeError('supports no URL in its file; remove --http')
  return entry
}

const connectOne = async (connecting: Connecting, host: HostName, place: HostPlace, options: ConnectOptions): Promise<Report> => {
  const { context, io, json, named } = connecting
  const { label, afterwards, note } = HOSTS[host]
  const connection = new HostConnection(place, stateRoot(context))
  const shown = nameOf(place.path, context)
  const there = await readPlace(host, place, context)
  const servers = there === undefined ? [] : usableIn(there, context).servers.filter((server) => !server.isOff)
  const count = servers.length === 1 ? 'its server' : `its ${servers.length} servers`
  const isMoved =
    servers.length > 0 &&
    (options.move === true ||
      (options.move === undefined && canAsk(io) && (await confirm(io, `${label}: move ${count} behind Trunkline?`, false))))
  // The servers are saved before they are removed from the file of the host.
  if (isMoved) await importServers({ ...connecting, json: false, io: toStderr(connecting) }, [host], { yes: true })
  const moved = isMoved ? servers.map(({ name }) => name) : []
  const entry = await entryOf(isMoved ? await connecting.again() : connecting, host, options)
  const planned = await connection.planConnect(entry, moved)
  if (planned.before === planned.after) {
    if (!json) await printLines(io, [`  ${label} is already connected (${shown})`])
    return { host, file: place.path, changed: false }
  }
  const isAsked = options.yes !== true && canAsk(io)
  if (!json || isAsked) remarkLines(io, [`${shown}:`, ...shownDiff(planned)])
  if (isAsked && !(await confirm(io, `Write ${shown}?`, true))) return { host, file: place.path, changed: false }
  const done = await connection.connect(entry, moved, planned, isAsked)
  if (!json) {
    const limits = HOST_LIMITS[host]
    const lines: Line[] = [
      `  ● ${label} is connected: ${shown} (backup: ${done.backup})`,
      ...(isMoved ? [`    ${moved.join(', ')} moved behind Trunkline`] : []),
      `    ${label}: ${afterwards}${note === undefined ? '' : `; ${note}`}`,
      ...(limits?.tools === undefined
        ? []
        : [`    it accepts at most ${limits.tools.most} tools: ${operatorCommand(named, 'check', '--host', host)}`]),
      ...((await servesNothing(isMoved ? await connecting.again() : connecting, options))
        ? [
            `    ▲ it gets no server yet: save the servers of this project by ${operatorCommand(named, 'init')}, and connect it again`,
          ]
        : []),
      `    undo: ${operatorCommand(named, 'disconnect', host)}`,
    ]
    await printLines(io, lines)
  }
  return { host, file: place.path, changed: true, backup: done.backup, entry, moved }
}

/** Without a configuration, a host gets the servers of the user's own host files, since it starts us in any folder. */
const servesNothing = async ({ configurations, context }: Connecting, { http }: ConnectOptions): Promise<boolean> => {
  if (http === true || configurations.length > 0) return false
  if ((await stat(userConfigurationPath(context.home, context.env)).catch(() => undefined)) !== undefined) return false
  const found = await findServers(context, undefined, ['user'])
  return found.every(({ servers }) => servers.every(({ isOff }) => isOff))
}

export const disconnect = async (
  { context, io, json }: Connecting,
  hosts: readonly string[],
  options: Pick<ConnectOptions, 'all' | 'scope' | 'yes'>,
): Promise<number> => {
  const words = options.all === true ? keysOf(HOSTS) : hosts.map(knownHost)
  if (words.length === 0) throw new CommandError(EXIT.usage, 'name a host, or --all')
  const scopes = options.scope === undefined ? SCOPES : [knownScope(options.scope)]
  const reports: object[] = []
  const lines: Line[] = []
  const failures: string[] = []
  for (const host of words)
    for (const place of placesOf(host, context, scopes)) {
      if (place.isOld === true) continue
      try {
        const connection = new HostConnection(place, stateRoot(context))
        const planned = await connection.planDisconnect()
        if (planned === undefined) continue
        const shown = nameOf(place.path, context)
        const isAsked = options.yes !== true && canAsk(io)
        if (!json || isAsked) remarkLines(io, [`${shown}:`, ...shownDiff(planned)])
        if (isAsked && !(await confirm(io, `Write ${shown}?`, true))) continue
        await connection.disconnect(planned, isAsked)
        reports.push({ host, file: place.path, changed: true })
        const result = planned.isRestored === true ? `${shown} is as it was` : `its entry is removed from ${shown}`
        lines.push(`  ○ ${HOSTS[host].label} is disconnected: ${result}`)
      } catch (error) {
        if (!(error instanceof ChangeError)) throw error
        failures.push(`${HOSTS[host].label}: ${error.message}`)
      }
    }
  if (json) await printJson(io, { hosts: reports })
  else if (reports.length === 0 && failures.length === 0) await printLines(io, ['  none of these files contains Trunkline'])
  else await printLines(io, lines)
  if (failures.length > 0) throw new CommandError(EXIT.config, failures.join('\n'))
  return EXIT.ok
}

/** The difference without values that look like secrets, since it may be copied into a report. */
const shownDiff = ({ before, after }: Change): readonly string[] =>
  diffLines(before, after).map((line) =>
    line
      .replace(
        /((?:token|secret|passw|credential|authorization|cookie|key)[\w-]*["']?\s*[:=]\s*["']?(?:Bearer\s+)?)(?!["'\s$[{])[^"'\s,$]{4,}/i,
        '$1***',
      )
      .replaceAll(/\b(gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|lin_api_|BSA)[\w-]{8,}/g, '$1***'),
  )

const chosenHosts = async (
  { context }: Connecting,
  hosts: readonly string[],
  { all }: ConnectOptions,
): Promise<readonly HostName[]> => {
  if (all !== true && hosts.length === 0)
    throw new CommandError(EXIT.usage, `name a host, or --all; known: ${Object.keys(HOSTS).join(', ')}`)
  if (all !== true) return hosts.map(knownHost)
  const found = await Promise.all(
    keysOf(HOSTS).map(async (host) => {
      const places = HOSTS[host].places(context).filter(({ scope }) => scope === 'user')
      // A host with a folder is installed, even without this file; the home folder itself proves nothing.
      const there = await Promise.all(
        places.map(async ({ path }) => (await exists(path)) || (dirname(path) !== context.home && (await exists(dirname(path))))),
      )
      return there.includes(true) ? [host] : []
    }),
  )
  return found.flat()
}

/** The file of this scope that exists, else the one whose folder exists, else the first. */
const placeFor = async (host: HostName, { context }: Connecting, { scope }: ConnectOptions): Promise<HostPlace> => {
  const places = HOSTS[host].places(context).filter(({ isOld }) => isOld !== true)
  const wanted = scope === undefined ? (places.some((place) => place.scope === 'user') ? 'user' : 'project') : knownScope(scope)
  const fit = places.filter((place) => place.scope === wanted)
  const [first] = fit
  if (first === undefined)
    throw new ChangeError(`has no file of scope ${wanted}; it has ${[...new Set(places.map((place) => place.scope))].join(', ')}`)
  const files = await Promise.all(fit.map(({ path }) => exists(path)))
  const folders = await Promise.all(fit.map(({ path }) => exists(dirname(path))))
  return fit[files.includes(true) ? files.indexOf(true) : folders.indexOf(true)] ?? first
}

const exists = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

const knownScope = (word: string): Scope => {
  const scope = SCOPES.find((one) => one === word)
  if (scope === undefined) throw new CommandError(EXIT.usage, `--scope is one of ${SCOPES.join(', ')}, got "${word}"`)
  return scope
}

/** By URL with `--http`; else the host starts us, and we attach to a running process. */
const targetFor = async (connecting: Connecting, host: HostName, options: ConnectOptions): Promise<Target> => {
  const { context, configurations, invocation } = connecting
  const { state } = invocation.context.overrides ?? {}
  const { http = false, stdio = false, toolset, tokenEnv } = options
  if (http && stdio) throw new CommandError(EXIT.usage, '--http and --stdio exclude each other')
  const status = http ? await runningStatus(connecting) : undefined
  if (http) {
    const url = status?.oauth?.endpoint ?? status?.urls[0]
    if (url === undefined)
      throw new CommandError(
        EXIT.unreachable,
        `no process of this configuration runs, so its URL is not known: start it (${operatorCommand(connecting.named, 'up')}), or remove --http`,
      )
    const tokenVariable = tokenEnv ?? (status?.auth === 'tokens' ? 'TRUNKLINE_TOKEN' : undefined)
    if (tokenVariable !== undefined && HOSTS[host].variable === undefined && HOSTS[host].http !== undefined)
      throw new ChangeError(`has no variables in its file, so the file would contain the token; remove --http`)
    return { kind: 'http', url: toolset === undefined ? url : `${url.replace(/\/$/, '')}/${toolset}`, tokenVariable }
  }
  const args = [
    'stdio',
    ...(toolset === undefined ? [] : ['--toolset', toolset]),
    ...configurations.flatMap((file) => ['-c', file]),
    ...(state === undefined ? [] : ['--state', resolve(context.cwd, state)]),
  ]
  return { kind: 'stdio', ...launchOf(context.program, args, context.cwd), env: folderVariables(context) }
}

/** Variables of folders that differ from the defaults: many hosts pass on `HOME` and `PATH` only. */
const folderVariables = ({
  env,
  home,
  uid,
  platform = process.platform,
}: Connecting['context']): Readonly<Record<string, string>> | undefined => {
  const defaults: Readonly<Record<string, string | undefined>> = {
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_STATE_HOME: join(home, '.local', 'state'),
    XDG_RUNTIME_DIR: uid === undefined ? undefined : sessionFolder(uid),
    // Used where there is no session folder; macOS has one for each user.
    ...(env['XDG_RUNTIME_DIR'] ? {} : { TMPDIR: '/tmp' }),
  }
  const own = Object.entries(defaults).flatMap(([name, initial]) => {
    const value = env[name]
    const folder = value?.replace(/(?<=.)\/$/, '')
    return value === undefined || folder === undefined || !isAbsolute(folder) || folder === initial
      ? []
      : [[name, value] as const]
  })
  return own.length === 0 || platform === 'win32' ? undefined : Object.fromEntries(own)
}

/** How a host starts us: with our own program, by absolute paths, since desktop programs have another PATH. */
const launchOf = (
  program: readonly string[] | undefined,
  args: readonly string[],
  cwd: string,
): { readonly command: string; readonly args: readonly string[] } => {
  const [node, file] = program ?? []
  // The cache of npx may be deleted. The single executable is its own program.
  if (node !== undefined && file === undefined) return { command: node, args }
  if (node === undefined || file === undefined || /[/\\]_npx[/\\]/.test(file))
    return { command: 'npx', args: ['-y', 'trunkline', ...args] }
  return { command: node, args: [isAbsolute(file) ? file : resolve(cwd, file), ...args] }
}

/** Prints the output of `import` to stderr, so that stdout contains the answer of `connect` only. */
const toStderr = ({ io: { stderr, ...rest } }: Connecting): Connecting['io'] => ({ ...rest, stderr, stdout: stderr })

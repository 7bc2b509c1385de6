/** The inputs of commands: their configuration, found or named, and the environment of the process. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { locateSocket } from '../admin/socket/socket-location.ts'
import type { Connecting } from '../commands/setup/connect.ts'
import type { Writing } from '../commands/setup/import.ts'
import { CommandError, EXIT } from '../commands/terminal/io.ts'
import type { Invocation, Io, Read } from '../commands/terminal/io.ts'
import { remark } from '../commands/terminal/print.ts'
import { loadConfiguration } from '../config/load.ts'
import { FILE_NAME, findConfiguration, isOfAnother, userConfiguration, userConfigurationPath } from '../config/read/find.ts'
import { configurationId, runtimeRoot } from '../config/read/folders.ts'
import type { RuntimeEnvironment, EditedFile, readRuntimeEnvironment } from '../config/runtime-environment.ts'
import type { Discovered } from '../host-files/discovered.ts'
import { operatorCommand } from '../operator-command.ts'
import type { CommonOptions } from './common-options.ts'

/** How a command finds its configuration. */
export interface Finding {
  /** Also in the working folder: for commands that a person types, not for those that a host starts. */
  readonly looksAround?: boolean
  /** The lock file is about to be written. */
  readonly withoutLock?: boolean
  /** It also works without any server. */
  readonly takesNone?: boolean
  /** Reads no secret. */
  readonly withoutSecrets?: boolean
}

export interface Invocations {
  readonly invoked: (own: CommonOptions, finding?: Finding) => Promise<Invocation>
  /** For commands that write a configuration, which may not exist yet. `isHere`: only the one of this folder. */
  readonly writing: (own: CommonOptions & { readonly user?: boolean }, isHere?: boolean) => Promise<Writing>
  readonly connecting: (own: CommonOptions) => Promise<Connecting>
}

/** `program`: has read the options before the command. `readEnvironment`: reads the environment of the process. */
export const makeInvocations = (
  program: Command,
  io: Io,
  json: boolean,
  readEnvironment: typeof readRuntimeEnvironment,
): Invocations => {
  const skippedFiles = new Set<string>()
  const skipped = (file: string): void => {
    if (skippedFiles.has(file)) return
    skippedFiles.add(file)
    remark(io, `${file} is not used: it belongs to another user; to use it, name it: ${operatorCommand([file])}`)
  }
  /** The options of a command win over those before it. */
  const invoked = async (
    own: CommonOptions,
    { looksAround = true, withoutLock = false, takesNone = false, withoutSecrets }: Finding = {},
  ): Promise<Invocation> => {
    const before = program.opts<CommonOptions>()
    const options = { ...before, ...own, config: [...(before.config ?? []), ...(own.config ?? [])] }
    const { config: named, from = [], listen, state, allowUnauthenticatedNetwork, allowFaults, watch } = options
    if (from.length > 0 && named.length > 0)
      throw new CommandError(EXIT.usage, '--from and -c exclude each other: -c FILE serves a file as it is')
    const context = readEnvironment({
      named,
      listen,
      state,
      allowUnauthenticatedNetwork,
      allowFaults,
      withoutLock,
      withoutSecrets,
      watch,
    })
    const found = await filesOf(named, context, looksAround, skipped)
    const standard = userConfigurationPath(context.home, context.env)
    const files = found ?? [standard]
    const [file = standard] = files
    const id = configurationId(resolve(context.cwd, file))
    const socket = locateSocket({ id, runtimeDir: runtimeRoot(context) }, context.uid, context.platform)
    let latest: Discovered | undefined
    const read = async (edited?: readonly EditedFile[]): Promise<Read> => {
      const sinceMs = Date.now()
      const isDiscovered = found === undefined || from.length > 0
      const discovered = isDiscovered
        ? await discoverServers(context, { standsFor: file, from, looksAround, takesNone, before: latest })
        : undefined
      latest = discovered
      const configuration = discovered?.configuration ?? (await loadConfiguration({ files }, { ...context, edited }))
      io.redactor.learn(configuration.secrets)
      return { configuration, sinceMs, discovered }
    }
    return {
      files,
      isFound: found !== undefined,
      command: (...words) => operatorCommand(named, ...words),
      socket,
      read,
      context,
      io,
      json,
    }
  }

  const placeToWrite = async (own: CommonOptions & { readonly user?: boolean }, isHere = false): Promise<Writing> => {
    const before = program.opts<CommonOptions>()
    const named = [...(before.config ?? []), ...(own.config ?? [])]
    const context = readEnvironment({ named })
    const { cwd, home, env, uid } = context
    const found = named.length > 0 || isHere || own.user === true ? named[0] : await findConfiguration(cwd, home, env, uid)
    const file = own.user === true && found === undefined ? userConfigurationPath(home, env) : resolve(cwd, found ?? FILE_NAME)
    return { file, named, context, io, json }
  }
  /** Changed, the file would belong to this user, and its commands would run (T-12). */
  const isForbidden = ({ file, named, context }: Writing): Promise<boolean> | false =>
    named.length === 0 && isOfAnother(file, context.uid)
  const writing = async (own: CommonOptions & { readonly user?: boolean }, isHere = false): Promise<Writing> => {
    const place = await placeToWrite(own, isHere)
    if (!(await isForbidden(place))) return place
    throw new CommandError(EXIT.config, `${place.file} belongs to another user and is not changed; name it with -c FILE`)
  }
  const connecting = async (own: CommonOptions): Promise<Connecting> => {
    const place = await placeToWrite(own)
    const { context, named } = place
    const standard = userConfigurationPath(context.home, context.env)
    const files = (await filesOf(named, context, true, skipped)) ?? []
    const isStandard = files.length === 1 && files[0] === standard
    const invocation = await invoked(own)
    return {
      ...place,
      file: (await isForbidden(place)) ? standard : place.file,
      configurations: isStandard ? [] : files.map((file) => resolve(context.cwd, file)),
      invocation,
      again: () => connecting(own),
    }
  }
  return { invoked, writing, connecting }
}

/** The files of the configuration; `undefined`: there is none. `stdio` never looks in the working folder. */
const filesOf = async (
  named: readonly string[],
  { cwd, home, env, uid }: RuntimeEnvironment,
  looksAround: boolean,
  skipped: (file: string) => void,
): Promise<readonly string[] | undefined> => {
  if (named.length > 0) return named
  const found = await (looksAround ? findConfiguration(cwd, home, env, uid, skipped) : userConfiguration(home, env))
  return found === undefined ? undefined : [found]
}

interface Discovery extends Pick<Finding, 'looksAround' | 'takesNone'> {
  readonly standsFor: string
  readonly from: readonly string[]
  /** The previous result. */
  readonly before: Discovered | undefined
}

/** Replaces a missing configuration: the servers of hosts; without `looksAround`, those of no project. */
const discoverServers = async (
  context: RuntimeEnvironment,
  { standsFor, from, looksAround, takesNone, before }: Discovery,
): Promise<Discovered> => {
  const [{ discover, refuseBroken }, { refuseChangeErrors }] = await Promise.all([
    import('../host-files/discovered.ts'),
    import('../commands/setup/import.ts'),
  ])
  const scopes = looksAround === true ? (['local', 'project', 'user'] as const) : (['user'] as const)
  const discovered = await refuseChangeErrors(() => discover(context, { standsFor, scopes, from }))
  if (before !== undefined) await refuseChangeErrors(async () => refuseBroken(before, discovered))
  if (discovered.configuration.servers.length > 0 || takesNone === true) return discovered
  if (from.length > 0) throw new CommandError(EXIT.config, `${from.join(', ')}: no server can be used${reasonsOf(discovered)}`)
  const { cwd, home, env, uid } = context
  const near = looksAround === true ? undefined : await findConfiguration(cwd, home, env, uid)
  if (near !== undefined)
    throw new CommandError(
      EXIT.config,
      `no configuration is named: a host starts stdio in any folder, so ${near} is used only with -c: ${operatorCommand([near], 'stdio')}`,
    )
  const add = operatorCommand([], 'add', 'NAME')
  throw new CommandError(
    EXIT.config,
    `no configuration found, and no server in the files of hosts: ${add} URL, ${add} -- COMMAND, or name one with -c FILE`,
  )
}

const reasonsOf = ({ found, leftOut }: Discovered): string => {
  const reasons = [...found.flatMap(({ problems }) => problems), ...leftOut.values()]
  return reasons.length === 0 ? ': there is none; to serve those of other hosts, remove --from' : `: ${reasons.join('; ')}`
}

/**
 * Starts processes: a file and its arguments, never a shell, but for batch files on Windows (T-12). Each has its own process group,
 * exactly the given environment (T-13), and an entry in the pid journal. On Linux, `setpriv --pdeathsig` ends it when the gateway dies
 * (F-23). Where the gateway ends without stopping them, such as at a second signal, they are killed at its exit (F-22).
 */
import { execFile, spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams, StdioOptions } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { asError } from '../../values/as-error.ts'
import { Failure } from '../../wire/message/failure.ts'
import { findCommand } from './find-command.ts'
import type { PidJournal } from './pid-journal.ts'
import { pipesOf, startTimeOf } from './process-table.ts'
import { DEFAULT_STOP_TIMES, ProcessTree } from './process-group.ts'
import type { Launch, ProcessTreeOptions, StopTimes } from './process-group.ts'
import { windowsCommand } from './windows-command.ts'
import type { CommandLine } from './windows-command.ts'

export interface LauncherOptions {
  /** The PATH of the gateway, searched for `setpriv`. Without `setpriv`, children may outlive the gateway. */
  readonly path?: string
  readonly journal?: Pick<PidJournal, 'add' | 'remove'>
  readonly stop?: StopTimes
  readonly platform?: NodeJS.Platform
  /** The highest descriptor that the gateway has inherited. Children inherit no descriptor above 2. */
  readonly maxInheritedFd?: number
  /** Registers a callback for the exit of the gateway's process; returns how to remove it. Absent: children may outlive the gateway. */
  readonly atExit?: (callback: () => void) => () => void
}

/** Spawns a process. Rejects with `Failure('spawn_failed')`, retryable only for transient errors. */
export type Launcher = (launch: Launch, events?: Pick<ProcessTreeOptions, 'onStderr' | 'stderr'>) => Promise<ProcessTree>

export const createLauncher = (options: LauncherOptions = {}): Launcher => {
  const { path, journal, stop = DEFAULT_STOP_TIMES, platform = process.platform, maxInheritedFd = 2, atExit } = options
  const stdio = stdioWithout(maxInheritedFd)
  const isPosix = platform !== 'win32'
  let wrapper: Promise<readonly string[]> | undefined
  return async (launch, events = {}) => {
    wrapper ??= platform === 'linux' && path !== undefined ? findWrapper(path) : Promise.resolve([])
    const line = isPosix ? await behind(await wrapper, launch) : await windowsCommand(launch, isFile)
    const child = await spawnChild(launch, line, isPosix, stdio)
    // Cast: a spawnChild process has a pid.
    const pid = child.pid!
    const tree = new ProcessTree(child, pid, { name: launch.command, isGroup: isPosix, stop, ...events })
    const remove = atExit?.(() => tree.kill())
    if (remove !== undefined) void tree.exited.then(remove)
    if (journal !== undefined) await record(tree, journal)
    return tree
  }
}

const behind = async (wrapper: readonly string[], launch: Launch): Promise<CommandLine> => {
  const command = await findCommand(launch)
  const [file = command, ...args] = [...wrapper, command, ...launch.args]
  return { file, args, isVerbatim: false }
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  )

/** An inherited socket stays open in a child unless its descriptor is replaced. */
const stdioWithout = (maxInheritedFd: number): StdioOptions =>
  Array.from({ length: maxInheritedFd + 1 }, (_, fd) => (fd <= 2 ? 'pipe' : 'ignore'))

const spawnChild = (
  launch: Launch,
  { file, args, isVerbatim }: CommandLine,
  detached: boolean,
  stdio: StdioOptions,
): Promise<ChildProcessWithoutNullStreams> =>
  new Promise((resolve, reject) => {
    const fail = (error: unknown): void => reject(asFailure(launch, asError(error)))
    try {
      const child = spawn(file, [...args], {
        cwd: launch.cwd,
        // A copy: Node writes to it (NODE_V8_COVERAGE), and a configuration is frozen.
        env: { ...launch.env },
        shell: false,
        detached,
        stdio,
        windowsHide: true,
        windowsVerbatimArguments: isVerbatim,
      })
      child.once('error', fail)
      child.once('spawn', () => {
        child.off('error', fail)
        // Cast: the first three are pipes.
        resolve(child as ChildProcessWithoutNullStreams)
      })
    } catch (error) {
      fail(error)
    }
  })

/** Transient errors: no process, memory or descriptor is free at present. */
const TRANSIENT: ReadonlySet<string | undefined> = new Set(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ETXTBSY'])

const asFailure = (launch: Launch, error: NodeJS.ErrnoException): Failure =>
  new Failure(
    'spawn_failed',
    `spawn ${launch.command}: ${error.message}`,
    { executed: 'no', retryable: TRANSIENT.has(error.code) },
    error,
  )

const record = async (tree: ProcessTree, journal: Pick<PidJournal, 'add' | 'remove'>): Promise<void> => {
  // A child whose start time cannot be read is used without a record.
  const startTime = await startTimeOf(tree.pid).catch(() => undefined)
  if (startTime === undefined || tree.exit !== undefined) return
  journal.add({ pid: tree.pid, startTime, pipes: pipesOf(tree.pid) })
  void tree.exited.then(() => journal.remove(tree.pid))
}

/** `setpriv` with the option to kill the child when the gateway dies. Empty if it is missing or lacks the option (busybox). */
const findWrapper = async (path: string): Promise<readonly string[]> => {
  const name = { command: 'setpriv', args: [], env: { PATH: path }, cwd: '/' }
  try {
    const file = await findCommand(name)
    await promisify(execFile)(file, ['--pdeathsig', 'SIGKILL', file, '--version'], { timeout: 5000 })
    return [file, '--pdeathsig', 'SIGKILL']
  } catch {
    return []
  }
}

/** Commands about the servers of the running process: `ps`, `restart`, `approve`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Control } from '../../admin/control.ts'
import type { ServerStatus } from '../../admin/state/server-status.ts'
import type { Status, WorkerStatus } from '../../admin/state/status.ts'
import type { ReplicaStatus } from '../../replicas/replicas.ts'
import { reportLines } from '../inspect/check.ts'
import { running } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { lock } from '../inspect/lock.ts'
import { printResult } from '../terminal/print.ts'
import { columns } from '../terminal/table.ts'

export interface PsOptions {
  /** Also the other replicas. */
  readonly all?: boolean
}

export const ps = async (invocation: Invocation, { all = false }: PsOptions = {}): Promise<number> => {
  const { io, command } = invocation
  const status = await (await running(invocation)).status()
  const { pid, version, uptimeMs, urls, auth, files, workers, replicas } = status
  await printResult(invocation, status, (paint) => [
    `trunkline ${version}  pid ${pid}  up ${spell(uptimeMs)}  ${urls[0] ?? 'on a pipe'}  auth ${auth}  ${files[0]}`,
    ...reportLines(status, paint, command, io.stdout.columns),
    ...(workers === undefined ? [] : workerLines(workers)),
    ...(all ? replicaLines(replicas) : []),
  ])
  return EXIT.ok
}

const workerLines = (workers: NonNullable<Status['workers']>): readonly string[] => [
  '',
  ...columns(
    [['WORKER', 'PID', 'UP', 'SESSIONS', 'IN FLIGHT', 'MEMORY', 'RESTARTS'], ...workers.map(workerRow)],
    new Set([3, 4, 5, 6]),
  ),
]

const workerRow = ({ worker, pid, uptimeMs, sessions, inFlight, memoryBytes, restarts }: WorkerStatus): readonly string[] => [
  String(worker),
  ...(pid === undefined ? ['starting', '-'] : [String(pid), spell(uptimeMs)]),
  String(sessions),
  String(inFlight),
  `${Math.round(memoryBytes / 1e6)} MB`,
  String(restarts),
]

const replicaLines = (replicas: Status['replicas']): readonly string[] =>
  replicas === undefined
    ? ['', 'no other replica is known: there is no shared store (store), or it is not reachable']
    : ['', ...columns([['REPLICA', 'VERSION', 'UP', 'SESSIONS'], ...replicas.map(replicaRow)], new Set([3]))]

const replicaRow = ({ url, version = '-', startedAtMs, sessions, isSelf }: ReplicaStatus): readonly string[] => [
  isSelf ? `${url} (this one)` : url,
  version,
  startedAtMs === undefined ? '-' : spell(Math.max(0, Date.now() - startedAtMs)),
  String(sessions ?? '-'),
]

/** With a lock file, approving writes that file: `writing` reads the configuration without it. */
export const approve = async (
  invocation: Invocation,
  writing: Invocation,
  server: string,
  tool: string | undefined,
): Promise<number> => {
  const { read, command } = invocation
  const file = await writing.read().then(
    ({ configuration }) => configuration.lock,
    () => undefined,
  )
  if (file !== undefined)
    return lock(writing, { servers: [server], apps: false, ...(tool !== undefined && { name: tool }) }, read)
  const control = await running(invocation)
  const approved = await control.approve(server, tool)
  if (approved === undefined) throw await unknownServer(control, server)
  if (tool !== undefined && approved.length === 0)
    throw new CommandError(EXIT.usage, `no changed definition of "${tool}" waits for approval; ${command('ps')} shows which do`)
  await printResult(invocation, { approved }, () =>
    approved.length === 0 ? ['nothing waits for approval'] : approved.map((name) => `approved ${name}`),
  )
  return EXIT.ok
}

export const restart = async (invocation: Invocation, server: string): Promise<number> => {
  const { io, command } = invocation
  const control = await running(invocation)
  if (!(await control.restart(server))) throw await unknownServer(control, server)
  const { state, reason = 'no answer yet', needsSignIn, callers } = await outcomeOf(control, server, io.interrupted)
  if (needsSignIn && callers === undefined)
    throw new CommandError(EXIT.authorization, `${server} needs sign-in; sign in with ${command('login', server)}`)
  if (callers === undefined && state !== 'healthy' && state !== 'degraded')
    throw new CommandError(
      EXIT.unreachable,
      `${server} was restarted but does not run: ${reason}; ${command('ps')} shows its output`,
    )
  await printResult(invocation, { restarted: server, state }, () => [`restarted ${server}`])
  return EXIT.ok
}

/** How long a server without an answer is waited for, and how often its status is read. */
const RESTART_MS = 120_000
const POLL_MS = 100

/** The status of the server after its first attempt to start. */
const outcomeOf = async (control: Control, server: string, interrupted: AbortSignal): Promise<ServerStatus> => {
  const untilMs = performance.now() + RESTART_MS
  for (;;) {
    const found = (await control.status()).servers.find(({ key }) => key === server)
    if (found === undefined) throw new CommandError(EXIT.unreachable, `${server} is no longer configured`)
    const isOver = found.state !== 'starting' || found.reason !== undefined || found.callers !== undefined
    if (isOver || performance.now() >= untilMs) return found
    if (interrupted.aborted) throw new CommandError(EXIT.interrupted, 'interrupted')
    await sleep(POLL_MS)
  }
}

export const unknownServer = async (control: Control, server: string): Promise<CommandError> => {
  const keys = (await control.status()).servers.map(({ key }) => key)
  return new CommandError(EXIT.usage, `no server "${server}" is running; known: ${keys.join(', ')}`)
}

const spell = (ms: number): string => {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${seconds}s`
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)}m`
    : `${Math.floor(seconds / 3_600)}h${Math.floor((seconds % 3_600) / 60)}m`
}

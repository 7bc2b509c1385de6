/**
 * One of several processes that serve hosts (`listen.workers`): the configuration at its addresses, as a replica of the others on this
 * machine. Its supervisor controls it; without a supervisor it ends.
 */
import cluster from 'node:cluster'
import { once } from 'node:events'
import { localControl } from '../../admin/control.ts'
import type { FeedOptions } from '../../admin/calls/calls.ts'
import { metricFamilies } from '../../admin/state/metrics.ts'
import type { ReplayRequest } from '../../admin/calls/replay.ts'
import { timedCalls } from '../../admin/calls/stats.ts'
import type { Status, WorkerStatus } from '../../admin/state/status.ts'
import { startGateway } from '../../app.ts'
import type { Member } from '../../app/member.ts'
import { diffConfigurations } from '../../config/change/difference.ts'
import type { Configuration } from '../../config/options.ts'
import type { ServerLogs } from '../../downstream/server-logs.ts'
import { createLog } from '../../log.ts'
import type { Viewer } from '../../observe/viewer.ts'
import { RelayedStore } from '../../store/relayed-store.ts'
import type { TcpAddress } from '../../transport/http1/server/connection/listen-address.ts'
import { CommandError, CRASH_MS, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { Exchange } from './exchange.ts'
import type { Port } from './exchange.ts'
import { receivedConfiguration } from './sent-configuration.ts'
import type { SentConfiguration } from './sent-configuration.ts'
import { memberConfiguration, ownedServers } from './shared-servers.ts'
import type { OwnerAddress } from './shared-servers.ts'

/** The start message of a worker. */
export interface Start {
  readonly configuration: SentConfiguration
  readonly member: Member
  readonly owner: OwnerAddress
  readonly logFormat: 'json' | 'pretty'
  /** Calls are watched: captured and counted. */
  readonly isWatched: boolean
}

/** The status of a worker. */
export type WorkerReport = Pick<Status, 'servers' | 'limits' | 'rates' | 'audit'> &
  Pick<WorkerStatus, 'sessions' | 'inFlight' | 'uptimeMs' | 'memoryBytes'>

/** Serves until its supervisor or a signal ends it. */
export const serveAsWorker = async (invocation: Invocation): Promise<number> => {
  const { io } = invocation
  const { worker } = cluster
  if (worker === undefined)
    throw new CommandError(EXIT.usage, 'TRUNKLINE_WORKER is set, but no supervisor started this process; unset it')
  // SIGHUP reaches all processes of the group: the supervisor reloads, and sends a message.
  io.onHangup(() => undefined)
  const ended = Promise.withResolvers<number>()
  const port: Port = {
    send: (message) => worker.send(message),
    onMessage: (receive) => void worker.on('message', receive),
    onClose: (closed) => void worker.on('disconnect', closed),
  }
  // The supervisor has just ended, which a message to it meets first: `disconnect` follows.
  worker.on('error', () => undefined)
  let served: Served | undefined
  const exchange: Exchange = new Exchange(port, {
    start: async (start: Start): Promise<readonly TcpAddress[]> => {
      served = await serve(invocation, start, exchange)
      void served.running.exhausted.then((reason) => {
        served?.log.fatal({ reason }, 'unrecoverable: the worker ends, to be restarted')
        void end(EXIT.internal, CRASH_MS)
      })
      return served.running.front.addresses.tcp
    },
    stop: () => end(EXIT.ok),
    ping: () => true,
    answer: (name: keyof Served['answers'], ...args: never[]) => {
      // Cast: the supervisor has the same build, and sends the arguments of the named function.
      const answer = served?.answers[name] as ((...given: never[]) => unknown) | undefined
      if (answer === undefined) throw new Error(`the worker does not serve yet, or does not know ${name}`)
      return answer(...args)
    },
    published: (channel: string, message: string) => served?.store.published(channel, message),
    watch: (isWatched: boolean) => served?.watch(isWatched),
    follow: (id: number, options: FeedOptions) => served?.follow(id, options),
    unfollow: (id: number) => served?.unfollow(id),
  })
  const end = async (exitCode: number, withinMs?: number): Promise<void> => {
    await served?.running.stop(withinMs)
    ended.resolve(exitCode)
  }
  exchange.notify('ready')
  // Without the supervisor there is no owner of shared servers.
  port.onClose(() => void end(EXIT.internal))
  if (!io.interrupted.aborted)
    void once(io.interrupted, 'abort').then(() => end(EXIT.ok, io.crashed.aborted ? CRASH_MS : undefined))
  return ended.promise
}

type Served = Awaited<ReturnType<typeof serve>>

/** The requests that a serving worker answers. */
export type WorkerAnswers = Served['answers']

const serve = async ({ io, context }: Invocation, start: Start, exchange: Exchange) => {
  const { member, owner, logFormat, isWatched } = start
  let configuration = receivedConfiguration(start.configuration)
  const { redactor } = io
  redactor.learn([owner.token, ...configuration.secrets])
  const log = createLog({ ...configuration.log, format: logFormat }, io.stderr, redactor.hideJson).child({ worker: member.index })
  io.crashed.addEventListener('abort', () =>
    log.fatal({ error: String(io.crashed.reason) }, 'unexpected error: the process ends'),
  )
  const store = new RelayedStore((operation, args) => exchange.request('store', operation, args))
  const running = await startGateway(memberConfiguration(configuration, owner), {
    log,
    redactor,
    path: context.env['PATH'],
    atExit: io.atExit,
    store,
    member,
  })
  const reload = async (sent: SentConfiguration): Promise<readonly TcpAddress[]> => {
    await running.reopen()
    const next = receivedConfiguration(sent)
    redactor.learn(next.secrets)
    await running.apply(memberConfiguration(next, owner), new Set(diffConfigurations(configuration, next).changed))
    log.level = next.log.level
    configuration = next
    return running.front.addresses.tcp
  }
  const reloader = { problems: [], past: [], reload: unsupported, plan: unsupported }
  const control = localControl(running, { reloader, context, redactor })
  let unwatch: (() => void) | undefined
  const watch = (isOn: boolean): void => {
    if (isOn) unwatch ??= running.watchCalls()
    else {
      unwatch?.()
      unwatch = undefined
    }
  }
  watch(isWatched)
  const followed = new Map<number, AbortController>()
  void relayLogs(
    running.logs,
    () => configuration,
    // The owner relays the lines of shared servers.
    (lines) =>
      exchange.notify(
        'logs',
        lines.filter(({ line }) => !ownedServers(configuration).has(line.server)),
      ),
  )
  return {
    running,
    store,
    log,
    watch,
    /** Requests of the supervisor, by name. */
    answers: {
      reload,
      report: async (): Promise<WorkerReport> => {
        const { servers, limits, rates, audit } = await control.status()
        const { sessionCount: sessions, inFlight } = running.front
        const uptimeMs = Math.round(performance.now())
        return { sessions, inFlight, uptimeMs, memoryBytes: process.memoryUsage.rss(), servers, limits, rates, audit }
      },
      families: () => metricFamilies(running),
      calls: (viewer: Viewer, query: string) => control.calls(viewer, new URLSearchParams(query)),
      callDetail: (viewer: Viewer, id: number) => control.callDetail(viewer, id),
      replay: (viewer: Viewer, request: ReplayRequest) => control.replay(viewer, request, new AbortController().signal),
      timedCalls: (windowMs: number) => timedCalls(running, windowMs),
      restart: (server: string) => control.restart(server),
      approve: (server: string, tool: string | undefined) => control.approve(server, tool),
    },
    follow: (id: number, options: FeedOptions): void => {
      const controller = new AbortController()
      followed.set(id, controller)
      const sink = { isStalled: false, send: (message: unknown) => exchange.notify('feed', id, message) }
      control
        .follow(options, sink, controller.signal)
        .catch((error: unknown) => log.warn({ error: String(error) }, 'calls cannot be followed'))
    },
    unfollow: (id: number): void => {
      followed.get(id)?.abort()
      followed.delete(id)
    },
  }
}

const unsupported = (): Promise<never> => Promise.reject(new Error('the supervisor reads the configuration'))

/** Relays the lines that servers write. */
export const relayLogs = async (
  logs: ServerLogs,
  configuration: () => Pick<Configuration, 'servers'>,
  relay: (lines: readonly RelayedLine[]) => void,
): Promise<never> => {
  const never = new AbortController().signal
  for (let after = 0; ;) {
    const lines = logs.read({ servers: [], after, sinceMs: 0, count: Infinity })
    after = logs.latest
    const limits = new Map(configuration().servers.map(({ key, limits: { maxStderrBytes } }) => [key, maxStderrBytes]))
    if (lines.length > 0) relay(lines.map((line) => ({ line, maxBytes: limits.get(line.server) ?? 0 })))
    await logs.added(never)
  }
}

/** A line, and the limit of kept lines of its server. */
export interface RelayedLine {
  readonly line: Parameters<ServerLogs['relayed']>[0]
  readonly maxBytes: number
}

/** Several processes as one gateway (`listen.workers`): requests are sent to all of them, and their answers are merged. */
import { readFilter } from '../../admin/calls/calls.ts'
import type { FeedMessage } from '../../admin/calls/calls.ts'
import type { Control } from '../../admin/control.ts'
import { joinFamilies } from '../../admin/state/member-metrics.ts'
import { metricFamilies } from '../../admin/state/metrics.ts'
import { statsOf, timedCalls } from '../../admin/calls/stats.ts'
import { serverStatuses } from '../../admin/state/status.ts'
import type { ServerStatus } from '../../admin/state/server-status.ts'
import type { Status, WorkerStatus } from '../../admin/state/status.ts'
import { MEMBER_STRIDE } from '../../app/member.ts'
import type { Running } from '../../app/running.ts'
import type { CallDetail, CallRow } from '../../observe/capture/captured.ts'
import { formatMetrics } from '../../observe/metrics/exposition.ts'
import type { Family } from '../../observe/metrics/exposition.ts'
import type { CallPage } from '../../observe/observer.ts'
import type { ReplayEnd } from '../../admin/calls/replay.ts'
import type { Loaded } from '../terminal/io.ts'
import type { ProcessLog } from './serving.ts'
import { ownedServers } from './shared-servers.ts'
import { Supervisor } from './supervisor.ts'
import type { Serving } from './supervisor.ts'
import type { WorkerAnswers, WorkerReport } from './worker.ts'

/** Rejects with the reason if they cannot serve, and leaves nothing running. */
export const startWorkers = async (
  loaded: Loaded,
  processLog: ProcessLog,
): Promise<Running & { readonly whole: (control: Control) => Control }> => {
  const supervisor = await Supervisor.start(loaded, processLog)
  return Object.assign(supervisor.running, { whole: (control: Control) => wholeControl(supervisor, control, processLog) })
}

/** `local`: the control of the supervisor's own gateway. */
export const wholeControl = (supervisor: Supervisor, local: Control, { redactor }: Pick<ProcessLog, 'redactor'>): Control => {
  const { owner, view } = supervisor
  const isOwned = (server: string): boolean => ownedServers(supervisor.configuration).has(server)
  /** The worker that numbered a call; `undefined`: this process, or a worker that has ended. */
  const workerOf = (id: number): Serving | undefined => supervisor.serving.find(({ index }) => index === id % MEMBER_STRIDE)
  const requestAll = async <Name extends keyof WorkerAnswers>(name: Name, ...args: Parameters<WorkerAnswers[Name]>) =>
    (await supervisor.requestAll(name, ...args)).map(({ worker, answer }) => ({
      worker,
      // Cast: both sides have the same build.
      answer: answer as Awaited<ReturnType<WorkerAnswers[Name]>>,
    }))
  return {
    ...local,
    status: async () => {
      const [status, reports] = await Promise.all([local.status(), requestAll('report')])
      return joinStatus(status, redactor.hideIn(serverStatuses(owner)), reports, supervisor.restarts)
    },
    metrics: async (isOpenMetrics) => {
      const answers = await requestAll('families')
      const owned = metricFamilies(owner).filter(({ name }) => name.startsWith('trunkline_server_'))
      const text = formatMetrics(
        joinFamilies([
          { worker: 'supervisor', families: metricFamilies(view).map((family) => withoutServers(family, isOwned)) },
          { worker: 'supervisor', families: owned },
          ...answers.map(({ worker, answer }) => ({ worker: String(worker.index), families: answer })),
        ]),
        isOpenMetrics,
      )
      return redactor.hide(text)
    },
    calls: async (viewer, query) => {
      const [own, others] = await Promise.all([local.calls(viewer, query), requestAll('calls', viewer, query.toString())])
      return joinPages([own, ...others.map(({ answer }) => answer)])
    },
    callDetail: (viewer, id) => {
      const worker = workerOf(id)
      if (worker === undefined) return local.callDetail(viewer, id)
      return worker.exchange.request<CallDetail>('answer', 'callDetail', viewer, id)
    },
    replay: (viewer, request, signal) => {
      const worker = workerOf(request.id)
      if (worker === undefined) return local.replay(viewer, request, signal)
      return worker.exchange.request<ReplayEnd>('answer', 'replay', viewer, request)
    },
    follow: async (options, sink, signal) => {
      readFilter(options.filter)
      let missed = 0
      const receive = (message: FeedMessage): void => {
        // Every process sends one; the feed has that of this process.
        if (message.type === 'hello') return
        if (sink.isStalled) return void (missed += message.type === 'calls' ? message.calls.length : message.missed)
        if (missed > 0) sink.send({ type: 'gap', missed })
        missed = 0
        sink.send(message)
      }
      let unfollow: (() => void) | undefined
      const send = (message: FeedMessage): void => {
        sink.send(message)
        // The rows of workers follow the `hello`.
        unfollow ??= supervisor.follow(options, receive)
      }
      const own = {
        get isStalled() {
          return sink.isStalled
        },
        send,
      }
      await local.follow(options, own, signal).finally(() => unfollow?.())
    },
    stats: async (windowMs) => {
      const others = await requestAll('timedCalls', windowMs)
      const all = [...timedCalls(view, windowMs), ...others.flatMap(({ answer }) => answer)]
      const own = statsOf(
        view,
        windowMs,
        all.toSorted((a, b) => a.atMs - b.atMs),
      )
      const owned = new Map(statsOf(owner, windowMs, []).servers.map((row) => [row.server, row]))
      const servers = own.servers.map((row) => {
        const { state = row.state, memoryBytes = row.memoryBytes, inFlight = row.inFlight } = owned.get(row.server) ?? {}
        return { ...row, state, memoryBytes, inFlight }
      })
      return { ...own, servers }
    },
    stderr: async (server, lines) =>
      redactor.hideIn((isOwned(server) ? owner : view).fleet.get(server)?.dialer.stderrTail(lines)),
    restart: async (server) => {
      if (isOwned(server)) owner.fleet.restart(server, supervisor.configuration.host.drainMs)
      const [isKnown] = await Promise.all([local.restart(server), requestAll('restart', server)])
      return isKnown
    },
    approve: async (server, tool) => {
      const [approved] = await Promise.all([local.approve(server, tool), requestAll('approve', server, tool)])
      return approved
    },
  }
}

/** The family without the samples of owned servers, which the owner reports. */
const withoutServers = (family: Family, isOwned: (server: string) => boolean): Family => {
  if (!family.name.startsWith('trunkline_server_')) return family
  const samples = family.samples.filter(({ labels: { server } }) => server === undefined || !isOwned(server))
  // Cast: the samples are those of the same kind of family.
  return { ...family, samples } as Family
}

const joinPages = (pages: readonly CallPage[]): CallPage => {
  // Older calls than the end of a truncated page may be missing in it, so they are left to the next page.
  const cut = Math.max(0, ...pages.map(({ next }) => next ?? 0))
  const calls = pages.flatMap((page): readonly CallRow[] => page.calls).filter(({ id }) => id >= cut)
  const oldest = pages.flatMap(({ kept }) => kept.oldest ?? []).sort()[0] ?? null
  return {
    calls: calls.toSorted((a, b) => b.id - a.id),
    next: cut === 0 ? null : cut,
    kept: { calls: sum(pages, ({ kept }) => kept.calls), bytes: sum(pages, ({ kept }) => kept.bytes), oldest },
  }
}

const joinStatus = (
  status: Status,
  owned: readonly ServerStatus[],
  reports: readonly { readonly worker: Serving; readonly answer: WorkerReport }[],
  restarts: ReadonlyMap<number, number>,
): Status => {
  const byKey = new Map(owned.map((row) => [row.key, row]))
  const answers = reports.map(({ answer }) => answer)
  return {
    ...status,
    replicas: undefined,
    servers: status.servers.map((row) =>
      joinServer(
        row,
        byKey.get(row.key),
        answers.flatMap(({ servers }) => servers.filter(({ key }) => key === row.key)),
      ),
    ),
    limits: joinCounts(
      [status.limits, ...answers.map(({ limits }) => limits)],
      ({ option, server = '' }) => `${option} ${server}`,
      ['count'],
    ),
    rates: joinCounts([status.rates, ...answers.map(({ rates }) => rates)], ({ option }) => option, ['refused']),
    audit: joinAudit([status.audit, ...answers.map(({ audit }) => audit)]),
    workers: [...restarts].map(([worker, count]): WorkerStatus => {
      const found = reports.find((report) => report.worker.index === worker)
      const { uptimeMs = 0, sessions = 0, inFlight = 0, memoryBytes = 0 } = found?.answer ?? {}
      return { worker, pid: found?.worker.pid, uptimeMs, restarts: count, sessions, inFlight, memoryBytes }
    }),
  }
}

/** `owned`: the status at the owner; `others`: those at the workers. */
const joinServer = (row: ServerStatus, owned: ServerStatus | undefined, others: readonly ServerStatus[]): ServerStatus => {
  if (owned !== undefined) {
    const { state, reason, transport, revision, processes, links, inFlight, queued, failures, nextTryMs, startup, stderr } = owned
    const own = { state, reason, transport, revision, processes, links, inFlight, queued, failures, nextTryMs, startup, stderr }
    return { ...row, ...own }
  }
  const all = [row, ...others]
  return {
    ...row,
    links: sum(all, ({ links }) => links),
    inFlight: sum(all, ({ inFlight }) => inFlight),
    queued: sum(all, ({ queued }) => queued),
    processes: all.flatMap(({ processes }) => processes),
    fidelity: joinCounts(
      all.map(({ fidelity }) => fidelity),
      ({ rule, feature, verdict }) => `${rule} ${feature} ${verdict}`,
      ['count'],
    ),
  }
}

/** Merges rows of one name into one, with the sums of their counts. */
const joinCounts = <T extends object>(
  lists: readonly (readonly T[])[],
  nameOf: (row: T) => string,
  counts: readonly (keyof T)[],
): T[] => {
  const joined = new Map<string, T>()
  for (const row of lists.flat()) {
    const before = joined.get(nameOf(row))
    const summed = before && Object.fromEntries(counts.map((count) => [count, Number(before[count]) + Number(row[count])]))
    joined.set(nameOf(row), { ...row, ...summed })
  }
  return [...joined.values()]
}

const joinAudit = (states: readonly Status['audit'][]): Status['audit'] => {
  const kept = states.filter((state) => state !== undefined)
  const [first] = kept
  if (first === undefined) return undefined
  return {
    file: first.file,
    written: sum(kept, ({ written }) => written),
    dropped: sum(kept, ({ dropped }) => dropped),
    waiting: sum(kept, ({ waiting }) => waiting),
    error: kept.find(({ error }) => error !== undefined)?.error,
  }
}

const sum = <T>(rows: readonly T[], of: (row: T) => number): number => rows.reduce((total, row) => total + of(row), 0)

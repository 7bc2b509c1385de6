/** Calls of the last minutes by server and by tool: number, errors and durations. Computed from the captured calls. */
import type { Running } from '../../app/running.ts'
import { totalMsOf } from '../../observe/capture/call-facts.ts'
import { isErrorOutcome } from '../../observe/outcomes.ts'
import { serverMemory } from '../server-memory.ts'
import { shownServer } from '../shown-server.ts'

export interface Stats {
  readonly windowMs: number
  readonly servers: readonly ServerStats[]
  readonly tools: readonly ToolStats[]
  /** The most frequent first. */
  readonly errors: readonly ErrorCount[]
}

/** Calls of one server with the same error. */
export interface ErrorCount {
  readonly server: string
  /** `tool_error`, `timeout`, …: values of `outcome:` or `kind:` in a filter of calls. */
  readonly kind: string
  readonly count: number
}

/** Times in milliseconds; `null` without a call. */
interface Figures {
  readonly calls: number
  readonly errors: number
  readonly p50: number | null
  readonly p95: number | null
}

export interface ServerStats extends Figures {
  readonly server: string
  readonly state: string
  readonly inFlight: number
  /** Of its processes; `null`: there are none, or the system does not report it. */
  readonly memoryBytes: number | null
}

export interface ToolStats extends Figures {
  readonly tool: string
  readonly server: string
  /** ISO 8601. */
  readonly lastAt: string
}

export const DEFAULT_WINDOW_MS = 5 * 60_000

/** One call as plain data, so that those of several processes can be merged. */
export interface TimedCall {
  readonly server: string
  /** Of a tool. */
  readonly tool: string | undefined
  /** Wall clock in milliseconds. */
  readonly atMs: number
  readonly totalMs: number
  /** The kind of an error, or how the call ended. */
  readonly error: string | undefined
}

/** The captured calls of the window that went to a server, oldest first. */
export const timedCalls = ({ observer }: Pick<Running, 'observer'>, windowMs: number): readonly TimedCall[] =>
  observer.since(performance.now() - windowMs).flatMap((call) => {
    const { server, name, method, atMs, end } = call
    if (server === undefined) return []
    const tool = method === 'tools/call' ? name : undefined
    const totalMs = totalMsOf(call, performance.now())
    const isError = end !== undefined && isErrorOutcome(end.outcome)
    return { server, tool, atMs, totalMs, error: isError ? (end.kind ?? end.outcome) : undefined }
  })

/** `calls`: those of all processes. */
export const statsOf = (
  { fleet, configuration }: Pick<Running, 'fleet' | 'configuration'>,
  windowMs: number,
  calls: readonly TimedCall[],
): Stats => {
  const byServer = Map.groupBy(calls, ({ server }) => server)
  const ofTools = calls.filter(({ tool }) => tool !== undefined)
  const byTool = Map.groupBy(ofTools, ({ server, tool }) => `${server}\n${tool}`)
  const memory = serverMemory(fleet)
  return {
    windowMs,
    servers: fleet.downstreams$.value.map((downstream) => {
      const { all } = downstream
      const bytes = all.flatMap(({ dialer }) => dialer.processes).reduce((sum, { pid }) => sum + (memory.get(pid) ?? 0), 0)
      return {
        server: downstream.options.key,
        state: shownServer(downstream, configuration).health.state,
        ...figures(byServer.get(downstream.options.key) ?? []),
        inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
        memoryBytes: bytes === 0 ? null : bytes,
      }
    }),
    tools: [...byTool.values()].map((calls) => {
      const last = calls.at(-1)
      return {
        tool: last?.tool ?? '',
        server: last?.server ?? '',
        ...figures(calls),
        lastAt: new Date(last?.atMs ?? 0).toISOString(),
      }
    }),
    errors: errorsOf(calls),
  }
}

const errorsOf = (calls: readonly TimedCall[]): readonly ErrorCount[] => {
  const failed = calls.flatMap(({ server, error }) => (error === undefined ? [] : [{ server, kind: error }]))
  return [...Map.groupBy(failed, ({ server, kind }) => `${server}\n${kind}`).values()]
    .flatMap((alike) => alike.slice(0, 1).map((one) => ({ ...one, count: alike.length })))
    .toSorted((a, b) => b.count - a.count)
}

const figures = (calls: readonly TimedCall[]): Figures => {
  const times = calls.map(({ totalMs }) => totalMs).sort((a, b) => a - b)
  return {
    calls: calls.length,
    errors: calls.filter(({ error }) => error !== undefined).length,
    p50: quantile(times, 0.5),
    p95: quantile(times, 0.95),
  }
}

/** By nearest rank. */
const quantile = (sorted: readonly number[], share: number): number | null => {
  const found = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]
  return found === undefined ? null : Math.round(found * 100) / 100
}

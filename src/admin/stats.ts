/** Calls of the last minutes by server and by tool: how many, how many went wrong, how long they took. Made of what is captured. */
import type { Running } from '../app.ts'
import { totalMsOf } from '../observe/call-facts.ts'
import type { CallFacts } from '../observe/call-facts.ts'
import { isErrorOutcome } from '../observe/ends.ts'
import { groupMemory } from '../transport/process/group-memory.ts'

export interface Stats {
  readonly windowMs: number
  readonly servers: readonly ServerStats[]
  readonly tools: readonly ToolStats[]
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
  /** Of its processes; `null`: none, or the system does not say. */
  readonly memoryBytes: number | null
}

export interface ToolStats extends Figures {
  readonly tool: string
  readonly server: string
  /** ISO 8601. */
  readonly lastAt: string
}

export const DEFAULT_WINDOW_MS = 5 * 60_000

export const statsOf = ({ observer, fleet }: Pick<Running, 'observer' | 'fleet'>, windowMs: number): Stats => {
  const byServer = new Map<string, CallFacts[]>()
  const byTool = new Map<string, CallFacts[]>()
  for (const call of observer.since(performance.now() - windowMs)) {
    const { server, name, method } = call
    if (server === undefined) continue
    add(byServer, server, call)
    if (method === 'tools/call' && name !== undefined) add(byTool, `${server}\n${name}`, call)
  }
  const memory = groupMemory()
  return {
    windowMs,
    servers: fleet.downstreams$.value.map((downstream) => {
      const all = [downstream, ...(downstream.personal?.all ?? [])]
      const bytes = all.flatMap(({ dialer }) => dialer.processes).reduce((sum, { pid }) => sum + (memory.get(pid) ?? 0), 0)
      return {
        server: downstream.options.key,
        state: downstream.health$.value.state,
        ...figures(byServer.get(downstream.options.key) ?? []),
        inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
        memoryBytes: bytes === 0 ? null : bytes,
      }
    }),
    tools: [...byTool.values()].map((calls) => {
      const last = calls.at(-1)
      return {
        tool: last?.name ?? '',
        server: last?.server ?? '',
        ...figures(calls),
        lastAt: new Date(last?.atMs ?? 0).toISOString(),
      }
    }),
  }
}

const add = (map: Map<string, CallFacts[]>, key: string, call: CallFacts): void => {
  const list = map.get(key)
  if (list === undefined) map.set(key, [call])
  else list.push(call)
}

const figures = (calls: readonly CallFacts[]): Figures => {
  const times = calls.map((call) => totalMsOf(call, performance.now())).sort((a, b) => a - b)
  return {
    calls: calls.length,
    errors: calls.filter(({ end }) => end !== undefined && isErrorOutcome(end.outcome)).length,
    p50: quantile(times, 0.5),
    p95: quantile(times, 0.95),
  }
}

/** Nearest rank. */
const quantile = (sorted: readonly number[], share: number): number | null => {
  const found = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]
  return found === undefined ? null : Math.round(found * 100) / 100
}

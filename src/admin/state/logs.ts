/** Queries of lines that servers wrote: a page, or the next ones as soon as there are any. */
import type { Running } from '../../app/running.ts'
import type { LogLine, LogQuery, ServerLogs } from '../../downstream/server-logs.ts'
import { countOf } from '../calls/calls.ts'
import { AdminRefusal } from '../refusal.ts'

export interface LogPage {
  /** Oldest first. */
  readonly lines: readonly LogLine[]
  /** The number of the latest line of any server; later lines have higher numbers. */
  readonly latest: number
}

/** The longest wait for a line, so that a disconnected caller is noticed. */
const WAIT_MS = 20_000
const MAX_LINES = 10_000
const DEFAULT_LINES = 200

/** Query: `server` (repeatable), `after`, `since` (ms), `lines`, `wait`. Throws `AdminRefusal`. */
export const logQueryOf = (query: URLSearchParams): LogQuery & { readonly isWaiting: boolean } => ({
  servers: query.getAll('server'),
  after: countOf(query, 'after') ?? 0,
  sinceMs: countOf(query, 'since') ?? 0,
  count: Math.min(countOf(query, 'lines') ?? DEFAULT_LINES, MAX_LINES),
  isWaiting: query.get('wait') === 'true',
})

/** Rejects with `AdminRefusal` for a server that is not configured. */
export const readLogs = async (
  { logs, fleet }: Pick<Running, 'logs' | 'fleet'>,
  { isWaiting, ...query }: LogQuery & { readonly isWaiting: boolean },
  signal: AbortSignal,
): Promise<LogPage> => {
  const missing = query.servers.find((server) => fleet.get(server) === undefined)
  if (missing !== undefined) throw new AdminRefusal(404, 'gone', `there is no server ${JSON.stringify(missing)}`)
  if (isWaiting) await untilAny(logs, query, AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]))
  return { lines: logs.read(query), latest: logs.latest }
}

const untilAny = async (logs: ServerLogs, query: LogQuery, until: AbortSignal): Promise<void> => {
  while (!until.aborted && logs.read(query).length === 0) await logs.added(until)
}

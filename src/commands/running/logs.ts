/** `trunkline logs [SERVER…]`: the stderr and the log messages of servers, as kept by the running process (`limits.stderr`). */
import type { Control } from '../../admin/control.ts'
import type { LogLine } from '../../downstream/server-logs.ts'
import { parseDuration } from '../../config/schema/units.ts'
import { withoutColours } from '../../transport/process/output-tail.ts'
import { running } from '../serve/inline.ts'
import { unknownServer } from './servers.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { closedOutput, painter, printJson, printLines } from '../terminal/print.ts'
import type { Colour, Line, Paint } from '../terminal/print.ts'

export interface LogsOptions {
  readonly follow?: boolean
  readonly lines?: string
  /** A duration (`10m`) or a time (`2026-11-22T20:15`). */
  readonly since?: string
}

const MOST_LINES = 10_000

/** Colours of log levels (RFC 5424). */
const LEVEL_COLOURS: Readonly<Record<string, Colour>> = {
  warning: 'yellow',
  error: 'red',
  critical: 'red',
  alert: 'red',
  emergency: 'red',
}

export const logs = async (
  invocation: Invocation,
  servers: readonly string[],
  { follow, lines = '200', since }: LogsOptions,
): Promise<number> => {
  const { io, json, context } = invocation
  const count = /^\d{1,5}$/.test(lines) ? Number(lines) : Number.NaN
  if (!(count <= MOST_LINES)) throw new CommandError(EXIT.usage, `--lines takes a number up to ${MOST_LINES}, got "${lines}"`)
  const sinceMs = since === undefined ? 0 : startOf(since, Date.now())
  const control = await running(invocation)
  const known = (await control.status()).servers.map(({ key }) => key)
  const missing = servers.find((key) => !known.includes(key))
  if (missing !== undefined) throw await unknownServer(control, missing)
  const width = Math.max(...(servers.length === 0 ? known : servers).map((key) => key.length), 0)
  const paint = painter(io.stdout, context.env)
  const show = async (page: readonly LogLine[]): Promise<void> => {
    if (json) for (const { atMs, ...line } of page) await printJson(io, { at: new Date(atMs).toISOString(), ...line })
    else
      await printLines(
        io,
        page.flatMap((line) => linesOf(line, width, paint)),
      )
  }
  const isOver = AbortSignal.any([io.interrupted, closedOutput(io)])
  const first = await control.logs({ servers, after: 0, sinceMs, count, isWaiting: false }, io.interrupted)
  await show(count === 0 ? [] : first.lines)
  return follow === true ? followLogs(control, servers, first.latest, show, isOver) : EXIT.ok
}

const followLogs = async (
  control: Control,
  servers: readonly string[],
  latest: number,
  show: (lines: readonly LogLine[]) => Promise<void>,
  isOver: AbortSignal,
): Promise<number> => {
  let after = latest
  while (!isOver.aborted) {
    const query = { servers, after, sinceMs: 0, count: MOST_LINES, isWaiting: true }
    const page = await control.logs(query, isOver).catch(() => {
      if (isOver.aborted) return undefined
      throw new CommandError(EXIT.unreachable, 'the process has ended')
    })
    if (page === undefined) break
    after = Math.max(after, ...page.lines.map(({ number }) => number))
    await show(page.lines)
  }
  return EXIT.ok
}

/** `20:15:03.123  github  the line`; for a log message with its level and logger: `warning db: the text`. */
const linesOf = ({ atMs, server, from, level = '', logger, text, skipped }: LogLine, width: number, paint: Paint): Line[] => {
  const head = `${new Date(atMs).toISOString().slice(11, 23)}  ${server.padEnd(width)}  `
  const about = from === 'stderr' ? '' : `${[level, logger].filter(Boolean).join(' ')}: `
  const shown = `${about}${withoutColours(text)}`
  const colour = LEVEL_COLOURS[level]
  return [
    ...(skipped === undefined ? [] : [[head, paint(`${skipped} lines were skipped: too many in one second`, 'yellow')]]),
    [head, colour === undefined ? shown : paint(shown, colour)],
  ]
}

/** In milliseconds of the wall clock. A time without a zone is in UTC, as the shown times are. */
const startOf = (since: string, nowMs: number): number => {
  const agoMs = parseDuration(since)
  const zone = /T[^Z+-]*$/i.test(since) ? 'Z' : ''
  const atMs = agoMs === undefined && /^\d{4}-\d\d-\d\d/.test(since) ? Date.parse(since + zone) : Number.NaN
  if (agoMs === undefined && Number.isNaN(atMs))
    throw new CommandError(EXIT.usage, `--since takes a duration such as 10m, or a time such as 2026-11-22T20:15, got "${since}"`)
  return agoMs === undefined ? atMs : nowMs - agoMs
}

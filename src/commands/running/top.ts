/** `trunkline top`: the servers of the running process and their calls of the last minutes, live. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stats } from '../../admin/calls/stats.ts'
import { running } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { closedOutput, drawnOnStdout, isDrawn, printResult } from '../terminal/print.ts'
import { LiveScreen } from '../terminal/screen.ts'
import type { Shown } from '../terminal/screen.ts'
import { OPERATOR } from '../../observe/viewer.ts'
import { explainRefusal } from './captured-calls.ts'
import { columns } from '../terminal/table.ts'
import { counted } from '../../values/counted.ts'

export interface TopOptions {
  /** Print once and end. */
  readonly once?: boolean
}

const PERIOD_MS = 1_000
const WINDOW_MS = 5 * 60_000

export const top = async (invocation: Invocation, { once }: TopOptions): Promise<number> => {
  const { io, json } = invocation
  const control = await running(invocation)
  const isLive = once !== true && !json && isDrawn(io.stdout, invocation.context.env)
  if (!isLive) {
    const stats = await control.stats(WINDOW_MS)
    await printResult(invocation, stats, () => {
      const { top: head, middle, bottom } = shownOf(stats)
      return [...head, ...middle, ...bottom]
    })
    return EXIT.ok
  }
  using screen = new LiveScreen(drawnOnStdout(io), invocation.context.env['TERM'])
  // Calls are captured while a feed is open.
  const isLeft = AbortSignal.any([io.interrupted, closedOutput(io)])
  const over = new AbortController()
  const isOver = AbortSignal.any([isLeft, over.signal])
  const following = control
    .follow(
      { viewer: OPERATOR, filter: 'id:0', after: undefined, isWhole: false },
      { isStalled: false, send: () => undefined },
      isOver,
    )
    .catch(explainRefusal)
    .finally(() => over.abort())
  // It may be refused while figures are read; the reason is thrown below.
  following.catch(() => undefined)
  let failure: unknown
  while (!isOver.aborted) {
    const stats = await control.stats(WINDOW_MS).catch((error: unknown) => void (failure = error))
    if (stats === undefined || over.signal.aborted) break
    screen.show(shownOf(stats))
    await sleep(PERIOD_MS, undefined, { signal: isOver }).catch(() => undefined)
  }
  over.abort()
  await following
  if (isLeft.aborted) return EXIT.ok
  // A failure with a cause is that of the connection.
  if (failure instanceof Error && failure.cause === undefined) return explainRefusal(failure)
  throw new CommandError(EXIT.unreachable, 'the process has ended')
}

/** The servers with most calls are first, so that a low terminal shows them. */
const shownOf = ({ servers, tools, windowMs }: Stats): Shown => {
  const head = ['SERVER', 'STATE', 'CALLS', 'ERRORS', 'P50 MS', 'P95 MS', 'IN FLIGHT', 'MEMORY']
  const busiest = servers.toSorted((a, b) => b.calls - a.calls)
  const rows = busiest.map(({ server, state, calls, errors, p50, p95, inFlight, memoryBytes }) => [
    server,
    state,
    String(calls),
    String(errors),
    figure(p50),
    figure(p95),
    String(inFlight),
    memoryBytes === null ? '-' : `${Math.round(memoryBytes / 1_000_000)} MB`,
  ])
  const slow = tools
    .toSorted((a, b) => (b.p95 ?? 0) - (a.p95 ?? 0))
    .slice(0, 10)
    .map(({ tool, server, calls, errors, p50, p95 }) => [tool, server, String(calls), String(errors), figure(p50), figure(p95)])
  const minutes = `${windowMs / 60_000} minutes`
  const [names = '', ...middle] = columns([head, ...rows], new Set([2, 3, 4, 5, 6, 7]))
  return {
    top: [names],
    middle,
    bottom: [
      ...(slow.length === 0
        ? []
        : ['', ...columns([['TOOL', 'SERVER', 'CALLS', 'ERRORS', 'P50 MS', 'P95 MS'], ...slow], new Set([2, 3, 4, 5]))]),
      '',
      servers.every(({ calls }) => calls === 0)
        ? `no call was captured in the last ${minutes}: calls are captured while top or tail runs, or while the admin listener is open`
        : `the last ${minutes}`,
    ],
    rest: (left) => `… ${counted(left, 'more server')}`,
  }
}

const figure = (ms: number | null): string => (ms === null ? '-' : ms.toFixed(1))

/**
 * Shows what a command waits for. On a terminal one line is updated in place and cleared at the end; otherwise each slow server is named
 * once.
 */
import { serverStatuses } from '../../admin/state/status.ts'
import type { Running } from '../../app/running.ts'
import type { Io } from './io.ts'
import { clearLine, isDrawn, remark, remarkInPlace } from './print.ts'
import { startupText } from './table.ts'

/** Shorter waits are not shown. */
const FIRST_MS = 2_000
const PERIOD_MS = 1_000

/** Shows it until it is disposed. */
export const showWaiting = (
  running: Pick<Running, 'fleet' | 'gateway' | 'configuration'>,
  io: Pick<Io, 'stderr' | 'stdout' | 'redactor'>,
  env: Readonly<Record<string, string | undefined>>,
): Disposable => {
  const isLive = isDrawn(io.stderr, env)
  const sinceMs = performance.now()
  const shown = new Set<string>()
  let hasLine = false
  const update = (): void => {
    if (performance.now() - sinceMs < FIRST_MS) return
    const starting = serverStatuses(running).filter(({ state, failures }) => state === 'starting' && failures === 0)
    const texts = starting.map(({ key, startup }) => `${key} ${startup === undefined ? '' : startupText(startup)}`.trimEnd())
    if (isLive) {
      remarkInPlace(io, texts.length === 0 ? '' : `waiting for ${texts.join(', ')}`)
      hasLine = true
      return
    }
    for (const [at, { key }] of starting.entries()) if (!shown.has(key)) remark(io, `waiting for ${texts[at]}`)
    for (const { key } of starting) shown.add(key)
  }
  const timer = setInterval(update, PERIOD_MS)
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      if (hasLine) clearLine(io)
    },
  }
}

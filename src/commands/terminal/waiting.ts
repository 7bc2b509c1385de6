/**
 * Tells a person what a command waits for. On a terminal one line changes in place and is gone at the end; elsewhere each server that takes
 * long is named once.
 */
import { serverStatuses } from '../../admin/state/status.ts'
import type { Running } from '../../app/running.ts'
import type { Io } from './io.ts'
import { clearLine, isDrawn, remark, remarkInPlace } from './print.ts'
import { startupText } from './table.ts'

/** Shorter waits are not worth a word. */
const FIRST_MS = 2_000
const PERIOD_MS = 1_000

/** Until it is disposed. */
export const tellWaiting = (
  running: Pick<Running, 'fleet' | 'gateway' | 'configuration'>,
  io: Pick<Io, 'stderr' | 'stdout' | 'redactor'>,
  env: Readonly<Record<string, string | undefined>>,
): Disposable => {
  const isLive = isDrawn(io.stderr, env)
  const sinceMs = performance.now()
  const told = new Set<string>()
  let isShown = false
  const look = (): void => {
    if (performance.now() - sinceMs < FIRST_MS) return
    const starting = serverStatuses(running).filter(({ state, failures }) => state === 'starting' && failures === 0)
    const texts = starting.map(({ key, startup }) => `${key} ${startup === undefined ? '' : startupText(startup)}`.trimEnd())
    if (isLive) {
      remarkInPlace(io, texts.length === 0 ? '' : `waiting for ${texts.join(', ')}`)
      isShown = true
      return
    }
    for (const [at, { key }] of starting.entries()) if (!told.has(key)) remark(io, `waiting for ${texts[at]}`)
    for (const { key } of starting) told.add(key)
  }
  const timer = setInterval(look, PERIOD_MS)
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      if (isShown) clearLine(io)
    },
  }
}

/** Why a server is still starting: a cold `npx` takes most of a minute and prints nothing. */
import { basename } from 'node:path'
import type { Downstream } from '../../downstream/downstream.ts'
import { ownValue } from '../../values/own-value.ts'
import type { Startup } from './server-status.ts'

/** Programs that download what they run. */
const FETCHED_BY: Readonly<Record<string, string>> = {
  npx: 'npx downloads a package that it does not have yet',
  npm: 'npm downloads a package that it does not have yet',
  bunx: 'bunx downloads a package that it does not have yet',
  pnpm: 'pnpm downloads a package that it does not have yet',
  uvx: 'uvx downloads a package that it does not have yet',
  uv: 'uv downloads a package that it does not have yet',
  docker: 'docker pulls an image that it does not have yet',
  podman: 'podman pulls an image that it does not have yet',
}
/** A start from a cache is faster. */
const COLD_MS = 3_000

/** `undefined`: it is not starting, or has no process. */
export const startupOf = (downstream: Downstream, nowMs: number): Startup | undefined => {
  const { options, health$ } = downstream
  const { processes } = downstream.dialer
  if (health$.value.state !== 'starting' || processes.length === 0) return undefined
  const forMs = Math.max(0, nowMs - Math.min(...processes.map(({ startedAt }) => startedAt)))
  const name = basename(options.launch?.command ?? '').replace(/\.(?:cmd|exe)$/i, '')
  const fetching = forMs >= COLD_MS ? ownValue(FETCHED_BY, name) : undefined
  return { forMs: Math.round(forMs), fetching, printed: downstream.dialer.stderrTail(1).at(-1) }
}

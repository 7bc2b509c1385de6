/** The state of a server: a sign and a word. Colour only where something is wrong. */
import type { JSX } from 'preact'
import type { ServerStatus } from '../../admin/state/server-status.ts'

/** `▲`: needs an action or time; `✗`: does not work. */
const TONES: Readonly<Record<string, string>> = {
  healthy: 'good',
  degraded: 'notice',
  starting: 'open',
  down: 'trouble',
  failed: 'trouble',
  draining: 'open',
}

export const HealthSign = ({
  server: { state, needsSignIn, isResting },
}: {
  readonly server: Pick<ServerStatus, 'state' | 'needsSignIn' | 'isResting'>
}): JSX.Element => {
  const shown = needsSignIn ? 'needs sign-in' : isResting ? 'resting' : state
  return (
    <span class={`outcome outcome-${needsSignIn ? 'notice' : (TONES[shown] ?? 'plain')}`}>
      <span class="outcome-sign" aria-hidden="true" />
      {shown}
    </span>
  )
}

/** The state of a server: a sign and a word. Colour only where something is wrong. */
import type { JSX } from 'preact'

/** `▲`: needs an action or time; `✗`: does not work. */
const TONES: Readonly<Record<string, string>> = {
  healthy: 'good',
  degraded: 'notice',
  starting: 'open',
  down: 'trouble',
  failed: 'trouble',
  draining: 'open',
}

export const HealthSign = ({ state, needsSignIn }: { readonly state: string; readonly needsSignIn: boolean }): JSX.Element => (
  <span class={`outcome outcome-${needsSignIn ? 'notice' : (TONES[state] ?? 'plain')}`}>
    <span class="outcome-sign" aria-hidden="true" />
    {needsSignIn ? 'needs sign-in' : state}
  </span>
)

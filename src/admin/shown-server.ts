/** The state of a server as people see it: in `ps`, in metrics and in figures. */
import type { Configuration } from '../config/options.ts'
import type { Downstream } from '../downstream/downstream.ts'
import { STARTING } from '../downstream/health/health.ts'
import type { Health, HealthState } from '../downstream/health/health.ts'
import { SHARED_PRINCIPAL } from '../rpc/call.ts'

/** The connection that stands for a server: where each caller has one, the best of them. A caller who has not signed in is no failure. */
export const shownServer = (
  common: Downstream,
  { host }: Configuration,
): {
  /** Connections of callers; `undefined`: there is one for all. */
  readonly callers: readonly Downstream[] | undefined
  readonly downstream: Downstream
  readonly needsSignIn: boolean
  readonly health: Health
} => {
  const { personal } = common
  const callers = personal !== undefined && host.auth !== undefined ? personal.all : undefined
  const own = callers === undefined ? personal?.find(SHARED_PRINCIPAL) : bestOff(callers)
  const downstream = own ?? common
  const isMissing = isUnsigned(downstream)
  // The only caller may have signed in before this start.
  const isUntried = personal !== undefined && own === undefined
  const needsSignIn = isMissing && callers === undefined && !isUntried
  const health = isMissing && !needsSignIn ? STARTING : downstream.health$.value
  return { callers, downstream, needsSignIn, health }
}

export const isUnsigned = ({ health$ }: Downstream): boolean => health$.value.failure?.facts.signIn === true

/** Best first. */
const RANKS: readonly HealthState[] = ['healthy', 'degraded', 'starting', 'down', 'failed', 'draining']

const bestOff = (all: readonly Downstream[]): Downstream | undefined =>
  all.toSorted((a, b) => RANKS.indexOf(a.health$.value.state) - RANKS.indexOf(b.health$.value.state))[0]

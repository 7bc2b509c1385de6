/** Facts of a caller that policy rules read besides the principal. Collected only while a policy is configured, except for pipes. */
import type { Identity } from '../auth/identity.ts'
import type { CallerFacts } from '../rpc/call.ts'
import { memberOf } from '../values/json-object.ts'

const NO_CLAIMS = {}
const NO_SCOPES: readonly string[] = []

/** The facts of a host on a pipe, which has no credential. */
export const PIPE_FACTS: CallerFacts = { claims: NO_CLAIMS, scopes: NO_SCOPES, address: '', host: '' }

/** Returns the facts without the host's name, which `withHost` adds once the message is read. */
export const factsOf = ({ claims = NO_CLAIMS, scopes = NO_SCOPES }: Identity, address: string): CallerFacts => ({
  claims,
  scopes,
  address,
  host: '',
})

/** `clientInfo`: parsed JSON of any type. */
export const withHost = (facts: CallerFacts, clientInfo: unknown): CallerFacts => {
  const name = memberOf(clientInfo, 'name')
  const { claims, scopes, address } = facts
  return { claims, scopes, address, host: typeof name === 'string' ? name : '' }
}

/** Whether credential and address are equal. Claims are compared by identity: those of one verified token are one object. */
export const isSameFacts = (a: CallerFacts | undefined, b: CallerFacts | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && a.claims === b.claims && a.scopes === b.scopes && a.address === b.address)

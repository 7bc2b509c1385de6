/** What rules of a policy read of a caller beside its principal. Collected only while there is a policy, except for pipes. */
import type { Identity } from '../auth/identity.ts'
import type { CallerFacts } from '../rpc/call.ts'
import { memberOf } from '../values/json-object.ts'

const NO_CLAIMS = {}
const NO_SCOPES: readonly string[] = []

/** Of a host on a pipe, which brings no credential. */
export const PIPE_FACTS: CallerFacts = { claims: NO_CLAIMS, scopes: NO_SCOPES, address: '', host: '' }

/** The name of the host is known once its message is read (`withHost`). */
export const factsOf = ({ claims = NO_CLAIMS, scopes = NO_SCOPES }: Identity, address: string): CallerFacts => ({
  claims,
  scopes,
  address,
  host: '',
})

/** `clientInfo`: as parsed JSON, whatever the host sent. */
export const withHost = (facts: CallerFacts, clientInfo: unknown): CallerFacts => {
  const name = memberOf(clientInfo, 'name')
  const { claims, scopes, address } = facts
  return { claims, scopes, address, host: typeof name === 'string' ? name : '' }
}

/** Whether the credential and the address are the same; claims of one verified token are one object. */
export const isSameFacts = (a: CallerFacts | undefined, b: CallerFacts | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && a.claims === b.claims && a.scopes === b.scopes && a.address === b.address)

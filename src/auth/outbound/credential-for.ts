/** Creates the configured credential of a server, for one principal or for all. */
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Credential } from './credential.ts'
import type { OAuthEnvironment } from './environment.ts'
import { ExchangeCredential } from './exchange-credential.ts'
import { MachineCredential } from './machine-credential.ts'
import { isPerUser } from '../credential-options.ts'
import type { CredentialOptions } from '../credential-options.ts'
import { UserCredential } from './user-credential.ts'

export interface CredentialTarget {
  /** Server key. */
  readonly key: string
  readonly url: URL | undefined
  readonly credential: CredentialOptions | undefined
}

/** Returns `undefined` if no credential is configured, or if `principal` is missing for a credential per principal. */
export const credentialFor = (
  { key, url, credential }: CredentialTarget,
  principal: string | undefined,
  environment: OAuthEnvironment,
): Credential | undefined => {
  if (credential === undefined || url === undefined) return undefined
  if (credential.mode === 'client') return new MachineCredential(url, credential, environment)
  if (isPerUser(credential) && principal === undefined) return undefined
  const owner = principal ?? SHARED_PRINCIPAL
  if (credential.mode === 'exchange') return new ExchangeCredential(url, credential, owner, environment)
  return new UserCredential({ key, server: url, principal: owner, signIn: credential }, environment)
}

/** How we prove to one server who is calling (BRIDGING 6.2, Credential modes), complete: texts without variables, absolute URLs. */

/** A client that is known to the authorization server: an id alone, with a secret, or with a key that signs. */
export interface ClientOptions {
  readonly id: string
  readonly secret: string | undefined
  /** A private key in PEM, for `private_key_jwt`. */
  readonly privateKey: string | undefined
  /** Of that key: ES256, RS256, … */
  readonly algorithm: string
}

/** The machine speaks for itself. */
export interface MachineOptions {
  readonly mode: 'client'
  readonly client: ClientOptions
  readonly scopes: readonly string[] | undefined
  /** Names the authorization server; `undefined`: the server says which. */
  readonly issuer: string | undefined
  /** Its authorization server may stand in a private network. */
  readonly isPrivate: boolean
}

/** A person signs in: each principal for itself, or the operator for all. */
export interface SignInOptions {
  readonly mode: 'user'
  readonly perUser: boolean
  /** `undefined`: a metadata document, or registered as we come. */
  readonly client: ClientOptions | undefined
  /** Where our metadata document is, if not with us. */
  readonly clientDocument: string | undefined
  readonly scopes: readonly string[] | undefined
  /** Names the authorization server; `undefined`: the server says which. */
  readonly issuer?: string | undefined
  /** `false`: no `offline_access` is requested, and so no token that outlives the sign-in where that takes one. */
  readonly offline?: boolean
  readonly isPrivate: boolean
}

/** The caller's own token is exchanged for one of the server. */
export interface ExchangeOptions {
  readonly mode: 'exchange'
  /** Who issued the caller's token, and takes it back. */
  readonly issuer: string
  readonly client: ClientOptions
  /** What the token is to be good for, in the issuer's words; `undefined`: the server's URL. */
  readonly audience: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly isPrivate: boolean
}

export type CredentialOptions = ExchangeOptions | MachineOptions | SignInOptions

/** Whether each principal has a credential of its own there. */
export const isPerUser = (options: CredentialOptions | undefined): boolean =>
  options?.mode === 'exchange' || (options?.mode === 'user' && options.perUser)

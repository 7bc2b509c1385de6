/** Options of the credential for one server (BRIDGING 6.2, Credential modes), with variables resolved and absolute URLs. */

/** A client of the authorization server: an id alone, with a secret, or with a signing key. */
export interface ClientOptions {
  readonly id: string
  readonly secret: string | undefined
  /** A private key in PEM, for `private_key_jwt`. */
  readonly privateKey: string | undefined
  /** Signature algorithm of the key: ES256, RS256, … */
  readonly algorithm: string
}

/** The gateway has client credentials at the server. */
export interface MachineOptions {
  readonly mode: 'client'
  readonly client: ClientOptions
  readonly scopes: readonly string[] | undefined
  /** Authorization server; `undefined`: the one that the server names. */
  readonly issuer: string | undefined
  /** The authorization server may be in a private network. */
  readonly isPrivate: boolean
}

/** A person signs in: each principal for itself, or the operator for all. */
export interface SignInOptions {
  readonly mode: 'user'
  readonly perUser: boolean
  /** `undefined`: a client metadata document or dynamic registration. */
  readonly client: ClientOptions | undefined
  /** URL of our client metadata document, if it is served elsewhere. */
  readonly clientDocument: string | undefined
  readonly scopes: readonly string[] | undefined
  /** Authorization server; absent: the one that the server names. */
  readonly issuer?: string | undefined
  /** `false`: `offline_access` is not requested by default. */
  readonly offline?: boolean
  readonly isPrivate: boolean
}

/** The caller's token is exchanged for a token of the server. */
export interface ExchangeOptions {
  readonly mode: 'exchange'
  /** The issuer of the caller's token, which exchanges it. */
  readonly issuer: string
  readonly client: ClientOptions
  /** `audience` of the exchanged token; `undefined`: the server's URL as `resource`. */
  readonly audience: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly isPrivate: boolean
}

export type CredentialOptions = ExchangeOptions | MachineOptions | SignInOptions

/** Whether each principal has its own credential. */
export const isPerUser = (options: CredentialOptions | undefined): boolean =>
  options?.mode === 'exchange' || (options?.mode === 'user' && options.perUser)

/** The dependencies of every credential. */
import type { Fetch } from '../fetch/safe-fetch.ts'
import type { TokenStore } from '../authorization-server/token-store.ts'

export interface OAuthEnvironment {
  readonly fetch: Fetch
  readonly store: TokenStore
  /** Wall clock in milliseconds: tokens outlive the process. */
  readonly now: () => number
  /** Returns the latest access token of a principal. */
  readonly subject: (principal: string) => string | undefined
  /** Whether callers sign in at an issuer: it is one of `auth.oauth`. */
  readonly isCallerIssuer: (issuer: string) => boolean
  /** Records that the issuer refused to exchange a principal's token. */
  readonly subjectRefused: (principal: string, token: string) => void
  /** Replaces the secrets of `holder`, which no output may show (T-14); empty: it has ended. */
  readonly secrets: (holder: object, tokens: readonly string[]) => void
}

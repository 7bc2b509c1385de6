/** What every credential needs from the process around it: passed in by the composition root. */
import { isLoopbackHost } from '../../transport/loopback.ts'
import type { Reach } from './addresses.ts'
import type { Fetch } from './safe-fetch.ts'
import type { TokenStore } from './store.ts'

export interface OAuthEnvironment {
  readonly fetch: Fetch
  readonly store: TokenStore
  /** Wall clock in milliseconds: tokens outlive the process. */
  readonly now: () => number
  /** The token that a principal came with last. */
  readonly subject: (principal: string) => string | undefined
  /** The issuer refused to exchange this token of a principal. */
  readonly subjectRefused: (principal: string, token: string) => void
  /** The live tokens of one holder, in place of those it named before: no output may show them (T-14). */
  readonly secrets: (holder: object, tokens: readonly string[]) => void
}

/** How far an issuer of the configuration may lie. */
export const reachOfIssuer = ({ allowsHttp, issuer }: { readonly allowsHttp: boolean; readonly issuer: string }): Reach =>
  allowsHttp && issuer.startsWith('http:') ? 'intranet' : 'private'

/** How far what a server names may lie: on this machine only if the server itself does. */
export const reachOf = (server: URL, isPrivate: boolean): Reach =>
  isPrivate ? 'private' : isLoopbackHost(server.hostname) ? 'loopback' : 'public'

/** Our credentials at servers: tokens, sign-ins of users, and the tokens of callers that are exchanged. */
import { Subject } from 'rxjs'
import type { Observable } from 'rxjs'
import { issuersOf } from '../auth/inbound/verify/inbound-options.ts'
import { credentialFor } from '../auth/outbound/credential-for.ts'
import type { Credential } from '../auth/outbound/credential.ts'
import { isSameIssuer } from '../auth/authorization-server/discovery.ts'
import type { OAuthEnvironment } from '../auth/outbound/environment.ts'
import type { Fetch } from '../auth/fetch/safe-fetch.ts'
import { SafeFetch } from '../auth/fetch/safe-fetch.ts'
import { SIGN_IN_TTL_MS, SignIns } from '../auth/outbound/sign-ins.ts'
import { TokenStore } from '../auth/authorization-server/token-store.ts'
import { SubjectTokens } from '../auth/subject-tokens.ts'
import type { ServerOptions } from '../downstream/options.ts'
import type { Replicas } from '../replicas/replicas.ts'
import { USER_AGENT } from '../user-agent.ts'
import type { Foundation } from './foundation.ts'
import { exchangesTokens } from './reload.ts'

export interface ServerCredentials {
  /** For requests to authorization servers. */
  readonly fetch: Fetch
  readonly signIns: SignIns
  /** Sign-ins wait for it: the URL under which browsers reach the gateway. */
  readonly reachedAt: (origin: () => Promise<string>) => void
  readonly subjects: SubjectTokens
  /** Principals with a new token. */
  readonly subjectChanged$: Observable<string>
  /** The changing credential of a server, if it needs one. `principal`: present if each principal has its own. */
  readonly credential: (options: ServerOptions, principal: string | undefined) => Credential | undefined
  readonly close: () => Promise<void>
}

export const openCredentials = (foundation: Foundation, replicas: Replicas | undefined): ServerCredentials => {
  const { inForce, log, redactor, seal, stateDir, store } = foundation
  const safeFetch = new SafeFetch({ userAgent: USER_AGENT })
  const subjectChanged$ = new Subject<string>()
  const subjects = new SubjectTokens((principal) => subjectChanged$.next(principal))
  subjects.want(exchangesTokens(inForce.configuration))
  const origin = Promise.withResolvers<() => Promise<string>>()
  const signIns = new SignIns(
    async () => (await origin.promise)(),
    undefined,
    (name) => replicas?.keepHome(name, SIGN_IN_TTL_MS) ?? Promise.resolve(),
  )
  const tokens = new TokenStore(
    seal,
    stateDir,
    (error) => log.warn({ error: String(error) }, 'tokens cannot be kept (state.dir): they end with this process'),
    store,
  )
  const oauth: OAuthEnvironment = {
    fetch: safeFetch.through(() => inForce.configuration.proxies),
    store: tokens,
    now: Date.now,
    subject: (principal) => subjects.of(principal),
    isCallerIssuer: (issuer) => {
      const own = inForce.configuration.host.auth?.oauth
      return own !== undefined && issuersOf(own).some((one) => isSameIssuer(one.issuer, issuer))
    },
    subjectRefused: (principal, token) => subjects.refuse(principal, token),
    secrets: redactor.hold,
  }
  return {
    fetch: oauth.fetch,
    signIns,
    reachedAt: origin.resolve,
    subjects,
    subjectChanged$,
    credential: (options, principal) =>
      credentialFor(options, principal, { ...oauth, fetch: safeFetch.through(() => options.proxies) }),
    close: () => {
      tokens.close()
      return safeFetch[Symbol.asyncDispose]()
    },
  }
}

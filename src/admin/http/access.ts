/**
 * The first checks of every request at the admin listener: `Host` against DNS rebinding, `Origin` against pages of other origins, and the
 * token. A page on another port of this machine is another origin here, unlike at the MCP endpoints.
 */
import type { Identity } from '../../auth/identity.ts'
import { isAllowedHost } from '../../host/http/guard/origins.ts'
import type { AdminOptions } from '../../observe/options.ts'
import type { Viewer } from '../../observe/viewer.ts'
import { OPERATOR } from '../../observe/viewer.ts'
import type { HttpRequest } from '../../transport/http1/server/request/http-request.ts'
import type { AdminCredentials } from './credentials.ts'
import { AdminRefusal } from '../refusal.ts'

/** Throws `AdminRefusal` for a request of another origin. */
export const checkOrigin = (request: HttpRequest, { allowedHosts, addresses }: AdminOptions): void => {
  const host = request.header('host')
  const names = [...allowedHosts, ...addresses.map((address) => bracketed(address.host))]
  if (request.count('host') !== 1 || !isAllowedHost(host, { allowedHosts: new Set(names), allowedOrigins: new Set() }))
    throw new AdminRefusal(
      403,
      'host',
      'this Host is not accepted: use the address in admin.bind, or list the name in admin.allowed_hosts',
    )
  const origin = request.header('origin')
  const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`
  // A cross-site request of a page has no `Origin` but `Sec-Fetch-Site`; following a link to the dashboard is allowed.
  const site = request.header('sec-fetch-site')
  const isFollowed = request.header('sec-fetch-mode') === 'navigate'
  if (!isOwn || !(site === undefined || site === 'same-origin' || site === 'none' || isFollowed))
    throw new AdminRefusal(403, 'origin', 'requests of other origins are not accepted')
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host).toLowerCase()

/** The token of the `Authorization` header; `undefined`: there is none, or several. */
export const tokenOf = (request: HttpRequest): string | undefined =>
  request.count('authorization') > 1 ? undefined : /^bearer +([\w~+/.-]+=*) *$/i.exec(request.header('authorization') ?? '')?.[1]

/** The viewer of a token: an operator for the token of a page or of the file, else the caller that `auth` accepts at the MCP endpoints. */
export const viewerOf = async (
  token: string,
  credentials: AdminCredentials,
  identityOf: (token: string) => Promise<Identity | undefined>,
  operatorScope: string,
): Promise<Viewer | undefined> => {
  if (credentials.admits(token)) return OPERATOR
  const identity = await identityOf(token)
  if (identity === undefined) return undefined
  const isOperator = identity.isOperator === true || identity.scopes?.includes(operatorScope) === true
  return { principal: identity.principal, isOperator }
}

/** The part of `trunkline check --live` about `auth.oauth`: whether each authorization server's metadata and keys can be read from here. */
import type { IssuerReport } from '../../auth/inbound/resource-server.ts'
import { SafeFetch } from '../../auth/oauth/safe-fetch.ts'
import type { Configuration } from '../../config/options.ts'
import type { Line, Paint } from '../terminal/print.ts'

export const checkIssuers = async ({ host, proxies }: Configuration): Promise<readonly IssuerReport[]> => {
  const oauth = host.auth?.oauth
  if (oauth === undefined) return []
  await using safeFetch = new SafeFetch()
  const { ResourceServer } = await import('../../auth/inbound/resource-server.ts')
  const clock = { wallMs: Date.now, monotonicMs: () => performance.now() }
  return await new ResourceServer(
    oauth,
    [],
    safeFetch.through(() => proxies),
    clock,
  ).report()
}

export const issuerLines = (reports: readonly IssuerReport[], paint: Paint): readonly Line[] =>
  reports.map(({ issuer, keys, error }) =>
    error === undefined
      ? [paint('●', 'green'), ` issuer ${issuer}  ${keys === undefined ? 'tokens are looked up' : `${keys} keys`}`]
      : [paint('✖', 'red'), ` issuer ${issuer}  ${error}`],
  )

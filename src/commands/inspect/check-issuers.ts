/** `trunkline check --live` for `auth.oauth`: whether the metadata and keys of each authorization server can be read. */
import type { IssuerReport } from '../../auth/inbound/verify/issuer-report.ts'
import { SafeFetch } from '../../auth/fetch/safe-fetch.ts'
import type { Configuration } from '../../config/options.ts'
import { USER_AGENT } from '../../user-agent.ts'
import type { Line, Paint } from '../terminal/print.ts'
import { counted } from '../../values/counted.ts'

export const checkIssuers = async ({ host, proxies }: Configuration): Promise<readonly IssuerReport[]> => {
  const oauth = host.auth?.oauth
  if (oauth === undefined) return []
  await using safeFetch = new SafeFetch({ userAgent: USER_AGENT })
  const { reportIssuers } = await import('../../auth/inbound/verify/issuer-report.ts')
  return await reportIssuers(
    oauth,
    safeFetch.through(() => proxies),
    () => performance.now(),
  )
}

export const issuerLines = (reports: readonly IssuerReport[], paint: Paint): readonly Line[] =>
  reports.map(({ issuer, path, keys, error }) =>
    error === undefined
      ? [paint('●', 'green'), ` issuer ${issuer}  ${keys === undefined ? 'tokens are introspected' : counted(keys, 'key')}`]
      : [paint('✖', 'red'), ` issuer ${issuer} (${path})  ${error}`],
  )

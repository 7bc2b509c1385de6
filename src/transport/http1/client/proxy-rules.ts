/**
 * Selects the HTTP proxy of a request: one proxy for each scheme, and excepted hosts (`NO_PROXY`). The syntax of exceptions
 * combines those of curl, Go and Node: `*`, `example.com` with its subdomains, `.example.com`, `*.example.com` (only
 * the subdomains), addresses, `10.0.0.0/8`, each with or without `:port`.
 *
 * Loopback addresses are always excepted: a proxy would connect to its own loopback address.
 */
import { withEscapes } from '../../../values/url-login.ts'
import { isLoopbackHost } from '../../loopback.ts'
import { inNetworks, readNetwork } from '../../networks.ts'

export interface ProxyRules {
  /** Of `http:` URLs; absolute, with user name and password if the proxy requires them. */
  readonly http: string | undefined
  /** Of `https:` URLs. */
  readonly https: string | undefined
  /** As in `NO_PROXY`, one entry each, in lower case. */
  readonly except: readonly string[]
}

export const NO_PROXIES: ProxyRules = { http: undefined, https: undefined, except: [] }

/** The proxy of a URL; `undefined`: a direct connection. */
export const proxyFor = (url: URL, { http, https, except }: ProxyRules): URL | undefined => {
  const proxy = url.protocol === 'https:' ? https : http
  const host = url.hostname.replace(/^\[|\]$|\.$/g, '').toLowerCase()
  if (proxy === undefined || isLoopbackHost(host) || host.endsWith('.localhost')) return undefined
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  return except.some((entry) => covers(entry, host, port)) ? undefined : decodable(new URL(proxy))
}

/** Clients decode user name and password, and would throw for a percent sign that begins no escape. */
const decodable = (proxy: URL): URL => {
  proxy.username = withEscapes(proxy.username)
  proxy.password = withEscapes(proxy.password)
  return proxy
}

/** Scheme, host and port of a proxy, without credentials, for log lines and error texts. */
export const originOfProxy = ({ protocol, host }: URL): string => `${protocol}//${host}`

const covers = (entry: string, host: string, port: string): boolean => {
  const [, bracketed, plain, only] = /^(?:\[(.+)\]|([^:]*|.*:.*:.*?))(?::(\d+))?$/.exec(entry) ?? []
  const name = (bracketed ?? plain ?? '').replace(/\.$/, '')
  if (name === '' || (only !== undefined && only !== port)) return false
  if (name === '*') return true
  const network = readNetwork(name)
  if (network !== undefined) return inNetworks([network])(host)
  if (name.startsWith('*.')) return host.endsWith(name.slice(1))
  const domain = name.replace(/^\./, '')
  return host === domain || host.endsWith(`.${domain}`)
}

/**
 * The proxies that the environment names: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, in lower case first, as curl, Python and Node
 * read them. Without `https_proxy`, `http_proxy` holds for both, as in undici.
 */
import { NO_PROXIES } from '../../../transport/http1/client/proxy-rules.ts'
import type { ProxyRules } from '../../../transport/http1/client/proxy-rules.ts'
import { decodedLogin } from '../../../values/url-login.ts'
import { parseHttpUrl } from '../../schema/kinds.ts'

interface EnvironmentProxies {
  readonly rules: ProxyRules
  /** Passwords in them. */
  readonly secrets: readonly string[]
  readonly warnings: readonly string[]
}

type Env = Readonly<Record<string, string | undefined>>

type ProxyName = 'HTTP_PROXY' | 'HTTPS_PROXY'

/** The variable that names a proxy, in upper or lower case, and its URL (`null`: not that of an HTTP proxy); `undefined`: there is none. */
export const namedProxy = (env: Env, name: ProxyName): { readonly variable: string; readonly url: URL | null } | undefined => {
  const text = valueOf(env, name)
  if (text === '') return undefined
  return { variable: env[name.toLowerCase()] === undefined ? name : name.toLowerCase(), url: parse(text) }
}

export const readProxies = (env: Env): EnvironmentProxies => {
  const warnings: string[] = []
  const read = (name: ProxyName): URL | undefined => {
    const url = namedProxy(env, name)?.url
    if (url === null)
      warnings.push(`${name} is not used: expected a URL such as http://proxy.example.com:3128 (HTTP proxies only, no SOCKS)`)
    return url ?? undefined
  }
  const http = read('HTTP_PROXY')
  const https = read('HTTPS_PROXY') ?? http
  const except = valueOf(env, 'NO_PROXY')
    .toLowerCase()
    .split(/[,\s]+/)
    .filter((entry) => entry !== '')
  const passwords = [http, https].flatMap((url) => (url === undefined ? [] : [url.password, decodedLogin(url.password)]))
  return {
    rules: { http: http?.href, https: https?.href, except },
    secrets: [...new Set(passwords)].filter((password) => password !== ''),
    warnings,
  }
}

/** The proxy of one server's entry wins over the environment. */
export const proxiesOf = (own: URL | 'none' | undefined, environment: ProxyRules): ProxyRules => {
  if (own === undefined) return environment
  return own === 'none' ? NO_PROXIES : { http: own.href, https: own.href, except: [] }
}

const valueOf = (env: Env, name: string): string => (env[name.toLowerCase()] ?? env[name] ?? '').trim()

/** `proxy:3128` means `http://proxy:3128`. */
const parse = (text: string): URL | null => parseHttpUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`) ?? null

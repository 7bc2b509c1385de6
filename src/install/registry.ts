/** Reads one server from a registry (API v0.1). Size and time of the answer are limited, because the registry is untrusted. */
import { asError } from '../values/as-error.ts'
import { SafeFetch } from '../auth/fetch/safe-fetch.ts'
import { DEFAULT_REGISTRY } from '../config/schema/registry.ts'
import type { RegistryOptions } from '../config/schema/registry.ts'
import { isLoopbackHost } from '../transport/loopback.ts'
import type { ProxyRules } from '../transport/http1/client/proxy-rules.ts'
import { memberOf } from '../values/json-object.ts'
import { InstallError } from './inputs.ts'
import { readServerJson } from './server-json.ts'
import type { ServerJson } from './server-json.ts'

/** `name`: `name` or `name@version`. Rejects with `InstallError`. */
export const fetchServer = async (name: string, options: RegistryOptions, proxies: ProxyRules): Promise<ServerJson> => {
  const [, id, version = 'latest'] = /^([^@]+)(?:@(.+))?$/.exec(name) ?? []
  const { url, timeoutMs, maxAnswerBytes: maxBytes } = options
  await using fetcher = new SafeFetch({ timeoutMs, maxBytes })
  const path = `/v0.1/servers/${encodeURIComponent(id ?? name)}/versions/${encodeURIComponent(version)}`
  const host = URL.parse(url)?.hostname ?? ''
  // A configured URL may be in a private network.
  const reach = url === DEFAULT_REGISTRY.url ? 'public' : isLoopbackHost(host) ? 'loopback' : 'private'
  const reply = await fetcher
    .through(() => proxies)({ url: `${url}${path}`, reach })
    .catch((error: unknown) => {
      const remedy = 'check registry.url, registry.timeout and registry.max_answer, or add the server by URL or command'
      throw new InstallError(`the registry cannot be read (${asError(error).message}); ${remedy}`, { cause: error })
    })
  if (reply.status === 404) throw new InstallError(`the registry ${url} has no server "${name}"; check the name`)
  if (reply.status !== 200) throw new InstallError(`the registry ${url} answered HTTP ${reply.status}; try again later`)
  const from = `the answer of ${url}`
  let value: unknown
  try {
    value = JSON.parse(reply.text)
  } catch (error) {
    throw new InstallError(`${from} is not JSON`, { cause: error })
  }
  const server = memberOf(value, 'server') ?? value
  const found = readServerJson(JSON.stringify(server), from)
  if (found.name !== id) throw new InstallError(`${from} is about ${JSON.stringify(found.name)}, not ${JSON.stringify(id)}`)
  return found
}

/** The static headers of one server: what may be configured, and credentials among them. */
import type { ServerEntry } from '../../schema/server-schema.ts'

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** The transports set these for every request. */
const OURS = /^(accept|connection|content-length|content-type|host|last-event-id|transfer-encoding|upgrade|mcp-.*)$/i

/** Headers and credentials as one; what cannot be sent, and what is said twice, is complained of. */
export const checkHeaders = (
  entry: ServerEntry,
  complain: (path: readonly string[], message: string, remedy: string) => void,
): Readonly<Record<string, string>> => {
  const { bearer, headers: secret } = entry.credentials ?? {}
  const places = new Map<string, string>()
  const result: Record<string, string> = {}
  const add = (name: string, value: string, path: readonly string[]) => {
    const first = places.get(name.toLowerCase())
    if (!NAME.test(name)) complain(path, `${JSON.stringify(name)} is not a header name`, 'use letters, digits and -')
    else if (OURS.test(name)) complain(path, `header ${name} is set by Trunkline`, 'remove it')
    else if (first !== undefined) complain(path, `header ${name} is already given by ${first}`, 'keep one of them')
    places.set(name.toLowerCase(), path.join('.'))
    result[name] = value
  }
  for (const [name, value] of Object.entries(entry.headers ?? {})) add(name, value, ['headers', name])
  for (const [name, value] of Object.entries(secret ?? {})) add(name, value, ['credentials', 'headers', name])
  if (bearer !== undefined) add('Authorization', `Bearer ${bearer}`, ['credentials', 'bearer'])
  return result
}

/** The static headers of one server, including those of its credentials. */
import { HEADER_NAME } from '../../../wire/headers/header-value.ts'
import type { ServerEntry } from '../../schema/server-schema.ts'
import type { ReportProblem } from '../../syntax/problems.ts'

/** Headers that the transports set themselves. */
const RESERVED = /^(accept|connection|content-length|content-type|host|last-event-id|transfer-encoding|upgrade|mcp-.*)$/i

/** Merges headers and credentials; reports headers that cannot be sent, and those that are given twice. */
export const buildHeaders = (entry: ServerEntry, report: ReportProblem): Readonly<Record<string, string>> => {
  const { bearer, headers: secret } = entry.credentials ?? {}
  const places = new Map<string, string>()
  const result: Record<string, string> = {}
  const add = (name: string, value: string, path: readonly string[]) => {
    const first = places.get(name.toLowerCase())
    if (!HEADER_NAME.test(name)) report(path, `${JSON.stringify(name)} is not a header name`, 'use letters, digits and -')
    else if (RESERVED.test(name)) report(path, `header ${name} is set by Trunkline`, 'remove it')
    else if (first !== undefined) report(path, `header ${name} is already given by ${first}`, 'keep one of them')
    places.set(name.toLowerCase(), path.join('.'))
    result[name] = value
  }
  for (const [name, value] of Object.entries(entry.headers ?? {})) add(name, value, ['headers', name])
  for (const [name, value] of Object.entries(secret ?? {})) add(name, value, ['credentials', 'headers', name])
  if (bearer !== undefined) add('Authorization', `Bearer ${bearer}`, ['credentials', 'bearer'])
  return result
}

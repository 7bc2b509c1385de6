/** Parses the challenge of a server's 401 or 403: the URL of its metadata and the required scopes ([RFC 6750] 3, [RFC 9728] 5.1). */

export interface BearerChallenge {
  readonly resourceMetadata: string | undefined
  /** Scopes of the operation, separated by spaces. */
  readonly scope: string | undefined
}

const LONGEST = 4_096
const PARAMETER = /([a-z_]{1,40})\s?=\s?(?:"((?:[^"\\]|\\.){0,2048})"|([^\s",]{1,2048}))/gi

/** Reads the `Bearer` challenge of a `WWW-Authenticate` header. Absent members are `undefined`. */
export const readChallenge = (header: string | undefined): BearerChallenge => {
  const text = (header ?? '').slice(0, LONGEST)
  const at = text.search(/\bbearer\b/i)
  const found = new Map<string, string>()
  for (const [, name = '', quoted, token = ''] of at === -1 ? [] : text.slice(at).matchAll(PARAMETER)) {
    const key = name.toLowerCase()
    if (!found.has(key)) found.set(key, quoted?.replaceAll(/\\(.)/g, '$1') ?? token)
  }
  return { resourceMetadata: found.get('resource_metadata'), scope: found.get('scope') }
}

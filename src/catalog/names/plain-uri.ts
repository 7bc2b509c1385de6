/** Plain spelling of URIs: a lenient server may decode a URI, take `\` for `/`, skip `.` and `//`, follow `..` anywhere, and stop at U+0000. */

/** Levels of nested percent-encoding. */
const MAX_DEPTH = 4

/**
 * The common spelling of all URIs that a lenient server may treat alike: decoded, without `.` and empty segments. `undefined`: the URI
 * contains `..` or U+0000, or its encoding is nested too deeply, so that it may mean any other URI.
 */
export const plainUri = (uri: string): string | undefined => {
  let decoded = uri.replaceAll('\\', '/')
  for (let depth = 0; /%[\da-f]{2}/i.test(decoded); depth++) {
    if (depth === MAX_DEPTH) return undefined
    decoded = decoded.replaceAll(/(?:%[\da-f]{2})+/gi, decode).replaceAll('\\', '/')
  }
  if (decoded.includes('\0') || decoded.split(/[/?#]/).includes('..')) return undefined
  const [, head = '', path = ''] = /^([a-z][a-z\d+.-]*:(?:\/\/[^/]*)?)?([^]*)$/i.exec(decoded) ?? []
  const kept = path.split('/').filter((segment) => segment !== '.' && segment !== '')
  const start = path.startsWith('/') ? '/' : ''
  return `${head}${start}${kept.join('/')}${kept.length > 0 && path.endsWith('/') ? '/' : ''}`
}

const decode = (bytes: string): string => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString()

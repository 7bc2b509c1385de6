/** What a lenient server may make of a URI: it may decode, take `\` for `/`, skip `.` and `//`, and follow `..` wherever it stands. */

/** How often an encoding may be wrapped in another. */
const MAX_DEPTH = 4

/**
 * The one spelling for all that mean the same: nothing encoded, no `.` and no empty segments. `undefined`: it climbs with `..`, or
 * hides how it is spelled, so that it may mean any other.
 */
export const plainUri = (uri: string): string | undefined => {
  let decoded = uri.replaceAll('\\', '/')
  for (let depth = 0; /%[\da-f]{2}/i.test(decoded); depth++) {
    if (depth === MAX_DEPTH) return undefined
    decoded = decoded.replaceAll(/(?:%[\da-f]{2})+/gi, decode).replaceAll('\\', '/')
  }
  if (decoded.split(/[/?#]/).includes('..')) return undefined
  const [, head = '', path = ''] = /^([a-z][a-z\d+.-]*:(?:\/\/[^/]*)?)?([^]*)$/i.exec(decoded) ?? []
  const kept = path.split('/').filter((segment) => segment !== '.' && segment !== '')
  const start = path.startsWith('/') ? '/' : ''
  return `${head}${start}${kept.join('/')}${kept.length > 0 && path.endsWith('/') ? '/' : ''}`
}

const decode = (bytes: string): string => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString()

/** What a lenient server may make of a URI: it may decode, take `\` for `/`, and follow `..` wherever it stands. */

/** How often an encoding may be wrapped in another. */
const MAX_DEPTH = 4

/** The URI with nothing encoded any more; `undefined`: it climbs with `..`, or hides how it is spelled, so that it may mean any other. */
export const plainUri = (uri: string): string | undefined => {
  let plain = uri.replaceAll('\\', '/')
  for (let depth = 0; /%[\da-f]{2}/i.test(plain); depth++) {
    if (depth === MAX_DEPTH) return undefined
    plain = plain.replaceAll(/(?:%[\da-f]{2})+/gi, decode).replaceAll('\\', '/')
  }
  return plain.split(/[/?#]/).includes('..') ? undefined : plain
}

const decode = (bytes: string): string => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString()

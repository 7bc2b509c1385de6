/** One spelling of a URI for all that mean the same to a lenient server. */

/** The path that a lenient server would find: decoded once, `\` as `/`, without `.`, `..` and empty segments. */
export const resolvedUri = (uri: string): string => {
  const decoded = uri
    .replaceAll(/(?:%[\da-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString())
    .replaceAll('\\', '/')
  const [, head = '', path = ''] = /^([a-z][a-z\d+.-]*:(?:\/\/[^/]*)?)?([^]*)$/i.exec(decoded) ?? []
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '.' && segment !== '') kept.push(segment)
  }
  const start = path.startsWith('/') ? '/' : ''
  return `${head}${start}${kept.join('/')}${kept.length > 0 && path.endsWith('/') ? '/' : ''}`
}

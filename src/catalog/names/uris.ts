/**
 * Exposed URIs (BRIDGING 4.4): `<prefix>+<uri>`, or `ui://~<prefix>/rest`, since hosts test for that scheme. Both are reversible
 * without a table, on any replica, and leave templates expandable. http(s) URIs stay, since hosts may fetch them directly. A relative
 * URI (terraform-mcp-server lists some) becomes `<prefix>+:<uri>`, which is absolute, as hosts require; no other URI has a colon there.
 */

const UI = 'ui://'
const UI_EXPOSED = 'ui://~'
const ABSOLUTE = /^[A-Za-z][A-Za-z0-9+.-]*:/
/** A template may also begin with an expression, or contain one in its scheme. */
const ABSOLUTE_TEMPLATE = /^(?:\{|[A-Za-z][A-Za-z0-9+.-]*[:{])/
const HTTP = /^https?:\/\//i

/** The exposed form of a URI or template of any scheme. */
export const prefixUri = (prefix: string, uri: string): string => {
  if (uri.startsWith(UI)) return `${UI_EXPOSED}${prefix}/${uri.slice(UI.length)}`
  return ABSOLUTE_TEMPLATE.test(uri) ? `${prefix}+${uri}` : `${prefix}+:${uri}`
}

/** The exposed form of a URI in a result of a server with namespaced URIs; http(s) and relative references stay. */
export const exposeUri = (prefix: string, uri: string): string =>
  ABSOLUTE.test(uri) && !HTTP.test(uri) ? prefixUri(prefix, uri) : uri

/**
 * The exposed form of a URI or template that such a server lists; never relative. Expansions of an exposed template are the exposed
 * forms of the expansions of the original.
 */
export const exposeListed = (prefix: string, uri: string): string => (HTTP.test(uri) ? uri : prefixUri(prefix, uri))

/**
 * Reverses `prefixUri` for the configured prefixes, also on templates; `undefined` if the URI is not an exposed form: another prefix, or
 * no scheme after it.
 */
export const restoreUri = (
  uri: string,
  isPrefix: (prefix: string) => boolean,
): { prefix: string; original: string } | undefined => {
  const isUi = uri.startsWith(UI_EXPOSED)
  const start = isUi ? UI_EXPOSED.length : 0
  const end = uri.indexOf(isUi ? '/' : '+', start)
  if (end === -1) return undefined
  const prefix = uri.slice(start, end)
  const rest = uri.slice(end + 1)
  const isRelative = !isUi && rest.length > 1 && rest.startsWith(':')
  const original = isRelative ? rest.slice(1) : `${isUi ? UI : ''}${rest}`
  return isPrefix(prefix) && (isRelative || ABSOLUTE_TEMPLATE.test(original)) ? { prefix, original } : undefined
}

/**
 * Exposed URIs (BRIDGING 4.4): `<prefix>+<uri>`, and `ui://~<prefix>/rest` because hosts test that scheme. Both can be undone
 * without a table, on any replica, and leave templates expandable. http(s) URIs promise that the host can fetch them itself, so
 * they stay.
 */

const UI = 'ui://'
const UI_EXPOSED = 'ui://~'
const ABSOLUTE = /^[A-Za-z][A-Za-z0-9+.-]*:/
/** A template may also begin with an expression, or spell its scheme with one. */
const ABSOLUTE_TEMPLATE = /^(?:\{|[A-Za-z][A-Za-z0-9+.-]*[:{])/
const HTTP = /^https?:\/\//i

export const isAbsoluteUri = (uri: string): boolean => ABSOLUTE.test(uri)
export const isAbsoluteTemplate = (template: string): boolean => ABSOLUTE_TEMPLATE.test(template)

/** The exposed form under a prefix, whatever the scheme. */
export const prefixUri = (prefix: string, uri: string): string =>
  uri.startsWith(UI) ? `${UI_EXPOSED}${prefix}/${uri.slice(UI.length)}` : `${prefix}+${uri}`

/** The exposed form of a URI of a server with namespaced URIs; http(s) and relative references stay as they are. */
export const exposeUri = (prefix: string, uri: string): string =>
  isAbsoluteUri(uri) && !HTTP.test(uri) ? prefixUri(prefix, uri) : uri

/** The exposed form of a URI template: its expansions are the exposed forms of the original's expansions. */
export const exposeTemplate = (prefix: string, template: string): string =>
  isAbsoluteTemplate(template) && !HTTP.test(template) ? prefixUri(prefix, template) : template

/**
 * Undoes `prefixUri` for one of the configured prefixes, also on templates; `undefined` if this is no exposed form: another
 * prefix, or no scheme behind it.
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
  const original = `${isUi ? UI : ''}${uri.slice(end + 1)}`
  return isPrefix(prefix) && isAbsoluteTemplate(original) ? { prefix, original } : undefined
}

/** The current route. Everything that the user has selected is in the address, so that it can be bookmarked and shared. */
import { signal } from '@preact/signals'
import { attempt } from '../../values/attempt.ts'

export interface Route {
  /** `traffic`, `calls`, …; the first segment of the path. */
  readonly screen: string
  /** The second segment, decoded; empty if absent. */
  readonly item: string
  readonly query: URLSearchParams
}

/** The path of what is shown, which the address may not have yet. */
let here = `${location.pathname}${location.search}`

const read = (): Route => {
  const [path = ''] = here.split('?', 1)
  const [, screen = '', item = ''] = path.split('/')
  const name = attempt(() => decodeURIComponent(item)) ?? item
  return { screen: screen || 'traffic', item: name, query: new URLSearchParams(here.slice(path.length)) }
}

export const route = signal<Route>(read())

/** Browsers ignore more than 200 changes of the history in ten seconds: a held key makes more. */
const WRITE_MS = 60
let writing: ReturnType<typeof setTimeout> | undefined
let isWritten = true

const write = (): void => {
  if (!isWritten) history.replaceState(null, '', here)
  isWritten = true
}

/** Goes to a path of the dashboard; `replace`: replaces the history entry. */
export const go = (path: string, { replace = false } = {}): void => {
  if (path === here) return
  if (!replace) {
    write()
    history.pushState(null, '', path)
  }
  here = path
  if (replace) {
    isWritten = false
    if (writing === undefined) write()
    writing ??= setTimeout(() => {
      writing = undefined
      write()
    }, WRITE_MS)
  }
  route.value = read()
}

/** The currently selected row: two key presses may precede the next rendering. */
export const selectedNow = (): string => route.peek().query.get('sel') ?? ''

/** Selects the row that is `by` rows away, within the list. */
export const selectBy = (names: readonly string[], by: number): void => {
  const next = names[Math.min(Math.max(names.indexOf(selectedNow()) + by, 0), names.length - 1)]
  if (next !== undefined) setQuery({ sel: next }, { replace: true })
}

/** Sets members of the query; an empty value removes one. `replace`: what is shown stays the same, so that Back skips it. */
export const setQuery = (changes: Readonly<Record<string, string>>, { replace = false } = {}): void => {
  const query = new URLSearchParams(route.peek().query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') query.delete(name)
    else query.set(name, value)
  }
  go(pathWith(here.split('?', 1)[0] ?? '', query), { replace })
}

const pathWith = (path: string, query: URLSearchParams): string => {
  const text = query.toString()
  return text === '' ? path : `${path}?${text}`
}

/** `/tools/gh__x`, percent-encoded for a path. */
export const pathTo = (screen: string, item = '', query: Readonly<Record<string, string>> = {}): string =>
  pathWith(item === '' ? `/${screen}` : `/${screen}/${encoded(item)}`, new URLSearchParams(query))

/** Percent-encoded for an address. A name of a host or a server may contain lone surrogates, which have no UTF-8. */
export const encoded = (name: string): string => encodeURIComponent(name.toWellFormed())

/** Handles links inside the page and the history buttons of the browser. */
export const startRouting = (): void => {
  if (location.pathname === '/') history.replaceState(null, '', `/traffic${location.search}${location.hash}`)
  here = `${location.pathname}${location.search}`
  addEventListener('popstate', () => {
    here = `${location.pathname}${location.search}`
    isWritten = true
    route.value = read()
  })
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (link === null || !isPlain || event.defaultPrevented || link.target !== '' || link.origin !== location.origin) return
    if (link.hasAttribute('download') || (link.hash !== '' && link.pathname === location.pathname)) return
    event.preventDefault()
    go(`${link.pathname}${link.search}`)
  })
}

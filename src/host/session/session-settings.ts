/** What a legacy host sets by requests, and does not set again of its own accord: what goes on with its session goes on with these. */
import { parseOwnJson } from '../../values/own-json.ts'
import { isLogLevel } from '../../wire/protocol/methods.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import type { Payload } from '../../wire/message/payload.ts'

export interface SessionSettings {
  /** Of `logging/setLevel`; absent: servers choose. */
  readonly level?: LogLevel
  /** URIs of `resources/subscribe` as the host writes them, the earliest first. */
  readonly watched?: readonly string[]
}

/** Of a host that has set nothing. */
export const NO_SETTINGS: SessionSettings = {}

type Setting = (settings: SessionSettings, params: Payload | undefined) => SessionSettings

/** What a request that was answered with a result has set, by its method. */
export const SETTINGS: ReadonlyMap<string, Setting> = new Map<string, Setting>([
  [
    'logging/setLevel',
    (settings, params) => {
      const level = params?.text('level')
      return !isLogLevel(level) || level === settings.level ? settings : { ...settings, level }
    },
  ],
  [
    'resources/subscribe',
    (settings, params) => {
      const uri = params?.text('uri')
      const { watched = [] } = settings
      return uri === undefined || watched.includes(uri) ? settings : { ...settings, watched: [...watched, uri] }
    },
  ],
  [
    'resources/unsubscribe',
    (settings, params) => {
      const uri = params?.text('uri')
      const { watched = [] } = settings
      return uri === undefined || !watched.includes(uri)
        ? settings
        : { ...settings, watched: watched.filter((other) => other !== uri) }
    },
  ],
])

/** At most this long. */
const MAX_TEXT = 16 * 1024

/** JSON; `isWhole`: with all that is watched, and not only the earliest of it. */
export const encodeSettings = ({
  level,
  watched = [],
}: SessionSettings): { readonly text: string; readonly isWhole: boolean } => {
  let count = watched.length
  for (;;) {
    const text = JSON.stringify({ level, watched: count === 0 ? undefined : watched.slice(0, count) })
    if (text.length <= MAX_TEXT || count === 0) return { text, isWhole: count === watched.length }
    count = Math.floor(count / 2)
  }
}

/** Of a text that another version has written, what is understood. */
export const readSettings = (text: string): SessionSettings => {
  const { level, watched } = parseOwnJson<{ level?: unknown; watched?: unknown } | null>(text) ?? {}
  const uris = Array.isArray(watched) ? watched.filter((uri): uri is string => typeof uri === 'string') : []
  return { ...(isLogLevel(level) && { level }), ...(uris.length > 0 && { watched: uris }) }
}

/** Settings that a legacy host makes by requests and does not repeat. They are kept with its session when another process continues it. */
import { parseOwnJson } from '../../values/own-json.ts'
import { isLogLevel } from '../../wire/protocol/methods.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import type { Payload } from '../../wire/message/payload.ts'

export interface SessionSettings {
  /** Of `logging/setLevel`; absent: servers choose the level. */
  readonly level?: LogLevel
  /** URIs of `resources/subscribe` as the host spells them, earliest first. */
  readonly watched?: readonly string[]
}

export const NO_SETTINGS: SessionSettings = {}

type Setting = (settings: SessionSettings, params: Payload | undefined) => SessionSettings

/** By method: returns the settings after a request was answered with a result; the same object if nothing has changed. */
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

/** Longer settings are cut. */
const MAX_TEXT = 16 * 1024

/** Returns the settings as JSON. `isWhole` false: only the earliest watched URIs are included. */
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

/** Reads settings, also of another version of the program: unknown members are dropped. */
export const readSettings = (text: string): SessionSettings => {
  const { level, watched } = parseOwnJson<{ level?: unknown; watched?: unknown } | null>(text) ?? {}
  const uris = Array.isArray(watched) ? watched.filter((uri): uri is string => typeof uri === 'string') : []
  return { ...(isLogLevel(level) && { level }), ...(uris.length > 0 && { watched: uris }) }
}

/** The log of the process: pino to stderr, as JSON lines or, on a terminal, in a readable form. stdout belongs to data and the protocol. */
import { pino } from 'pino'
import type { Logger } from 'pino'
import { parseOwnJson } from './values/own-json.ts'

export interface LogOptions {
  readonly level: string
  readonly format: 'auto' | 'json' | 'pretty'
}

/** Above this number of unread bytes, lines are dropped (F-26). */
const MAX_WAITING_BYTES = 1024 * 1024

/** `hideJson`: removes secrets from every line (`Redactor`). If the log is not read, lines are dropped and counted. */
export const createLog = (
  options: LogOptions,
  stream: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly writableLength?: number },
  hideJson: (json: string) => string = (json) => json,
): Logger => {
  const isPretty = options.format === 'pretty' || (options.format === 'auto' && stream.isTTY === true)
  let dropped = 0
  const say = (line: string): void => {
    const shown = hideJson(line.trimEnd())
    stream.write(isPretty ? humanForm(shown) : `${escapeJson(shown)}\n`)
  }
  const write = (line: string): void => {
    if ((stream.writableLength ?? 0) > MAX_WAITING_BYTES) return void dropped++
    if (dropped > 0) {
      const [level, time] = [40, Date.now()]
      say(`${JSON.stringify({ level, time, dropped, msg: 'the log was not read: lines were dropped' })}\n`)
      dropped = 0
    }
    say(line)
  }
  return pino({ level: options.level, base: null }, { write })
}

const LEVELS: Readonly<Record<number, string>> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }

interface LogLine {
  readonly level: number
  readonly time: number
  readonly msg: string
  readonly server?: string
}

const humanForm = (line: string): string => {
  const { level, time, msg, server, ...facts } = parseOwnJson<LogLine>(line)
  const at = new Date(time).toISOString().slice(11, 19)
  const rest = Object.entries(facts).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const source = server === undefined ? '' : `${server}: `
  return `${at} ${LEVELS[level] ?? 'info'} ${printable(`${source}${msg} ${rest.join(' ')}`.trimEnd())}\n`
}

/** Escapes control characters, line breaks, direction marks and hidden characters of foreign texts for a terminal (T-15). */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })

/** The same for JSON text, on one line: characters in strings are escaped as in JSON, and line breaks between tokens become spaces. */
export const escapeJson = (json: string): string =>
  json
    .replaceAll(/[\n\r\t]/g, ' ')
    .replace(UNPRINTABLE, (character) =>
      Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
        '',
      ),
    )

/** Joiners of emoji and letters stay. */
const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu

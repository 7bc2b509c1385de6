/** The process's own log: pino to stderr, JSON lines, or a human form on a terminal. stdout belongs to data and the protocol. */
import { Writable } from 'node:stream'
import { pino } from 'pino'
import type { Logger } from 'pino'

export interface LogOptions {
  readonly level: string
  readonly format: 'auto' | 'json' | 'pretty'
}

export const createLog = (options: LogOptions, stream: NodeJS.WritableStream & { isTTY?: boolean }): Logger => {
  const isPretty = options.format === 'pretty' || (options.format === 'auto' && stream.isTTY === true)
  return pino({ level: options.level, base: undefined }, isPretty ? humanForm(stream) : stream)
}

const LEVELS: Readonly<Record<number, string>> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }

interface LogLine {
  readonly level: number
  readonly time: number
  readonly msg: string
  readonly server?: string
}

const humanForm = (stream: NodeJS.WritableStream): Writable =>
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      const { level, time, msg, server, ...facts } = JSON.parse(chunk.toString()) as LogLine
      const at = new Date(time).toISOString().slice(11, 19)
      const rest = Object.entries(facts).map(
        ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
      )
      const who = server === undefined ? '' : `${server}: `
      stream.write(`${at} ${LEVELS[level] ?? 'info'} ${printable(`${who}${msg} ${rest.join(' ')}`.trimEnd())}\n`)
      done()
    },
  })

/** No escape sequence, line break or direction mark of a stranger reaches a terminal (T-15). */
export const printable = (text: string): string =>
  text.replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

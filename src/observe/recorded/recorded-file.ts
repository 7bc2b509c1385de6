/**
 * A recording: a file with captured calls, one line of JSON each, after a header line with the format and the tools. `tail --record` writes
 * it, `mock` serves it. Secrets that were hidden in the captured calls are hidden in it.
 */
import type { CallDetail } from '../capture/captured.ts'
import { isList, jsonObject, memberOf, parseJsonObject } from '../../values/json-object.ts'
import type { UnknownObject } from '../../values/json-object.ts'
import { Payload } from '../../wire/message/payload.ts'

/** Increased when a member changes its meaning. */
const FORMAT = 1

export interface Recorded {
  /** Definitions as listed to hosts. */
  readonly tools: readonly unknown[]
  readonly calls: readonly RecordedCall[]
}

/** A call that can be replayed. */
export interface RecordedCall {
  readonly method: string
  /** Parsed; without `_meta`. */
  readonly params: Readonly<Record<string, unknown>>
  /** JSON text as it was recorded; either `result` or `error` is present. */
  readonly result?: string
  readonly error?: string
}

export const formatHeader = (tools: readonly unknown[]): string =>
  `${JSON.stringify({ trunkline: 'recording', format: FORMAT, tools })}\n`

export const formatRecorded = (detail: CallDetail): string => `${JSON.stringify(detail)}\n`

/** Parses a recording. Throws an `Error` that names the invalid line. Calls whose messages were not kept whole are skipped. */
export const readRecording = (text: string): Recorded => {
  const [head = '', ...lines] = text.split('\n').filter((line) => line.trim() !== '')
  const { trunkline, format, tools } = parse(head, 1)
  if (trunkline !== 'recording' || !isList(tools)) throw new Error('line 1: this is no recording, as tail --record writes it')
  if (format !== FORMAT) throw new Error(`line 1: the recording has format ${String(format)}, this version reads ${FORMAT}`)
  const calls = lines.flatMap((line, at): RecordedCall[] => {
    const { method, request, response } = parse(line, at + 2)
    if (typeof method !== 'string') throw new Error(`line ${at + 2}: this is no captured call`)
    const [sent, received] = [memberOf(request, 'text'), memberOf(response, 'text')]
    if (typeof sent !== 'string' || typeof received !== 'string') return []
    const { params } = parse(sent, at + 2)
    parse(received, at + 2)
    const answer = Payload.at(Buffer.from(received))
    const [result, error] = [answer.raw('result')?.toString() ?? '{}', answer.raw('error')?.toString()]
    const { _meta, ...rest } = jsonObject(params) ?? {}
    return [{ method, params: rest, ...(error === undefined ? { result } : { error }) }]
  })
  return { tools, calls }
}

const parse = (json: string, line: number): UnknownObject => {
  const value = parseJsonObject(json)
  if (value === undefined) throw new Error(`line ${line}: expected a JSON object`)
  return value
}

/**
 * A recording: captured calls in a file, one line of JSON each, behind one that says what it is and which tools there were. `tail
 * --record` writes it, `mock` serves it. What was hidden when the calls were captured is hidden in it.
 */
import type { CallDetail } from '../capture/captured.ts'
import { isList, jsonObject, memberOf, parseJsonObject } from '../../values/json-object.ts'
import type { UnknownObject } from '../../values/json-object.ts'

/** Raised when a member changes its meaning. */
const FORMAT = 1

export interface Recorded {
  /** Definitions as hosts were listed them. */
  readonly tools: readonly unknown[]
  readonly calls: readonly RecordedCall[]
}

/** One call, as far as it can be played back. */
export interface RecordedCall {
  readonly method: string
  /** Parsed; without `_meta`. */
  readonly params: Readonly<Record<string, unknown>>
  /** Parsed; exactly one of the two. */
  readonly result?: unknown
  readonly error?: unknown
}

export const formatHeader = (tools: readonly unknown[]): string =>
  `${JSON.stringify({ trunkline: 'recording', format: FORMAT, tools })}\n`

export const formatRecorded = (detail: CallDetail): string => `${JSON.stringify(detail)}\n`

/** Throws an `Error` with the line that is wrong. Calls of which a side was not kept whole are left out. */
export const readRecording = (text: string): Recorded => {
  const [head = '', ...lines] = text.split('\n').filter((line) => line.trim() !== '')
  const { trunkline, format, tools } = parse(head, 1)
  if (trunkline !== 'recording' || !isList(tools)) throw new Error('line 1: this is no recording, as tail --record writes it')
  if (format !== FORMAT) throw new Error(`line 1: the recording has format ${String(format)}, this version reads ${FORMAT}`)
  const calls = lines.flatMap((line, at): RecordedCall[] => {
    const { method, request, response } = parse(line, at + 2)
    if (typeof method !== 'string') throw new Error(`line ${at + 2}: this is no captured call`)
    const [asked, answered] = [memberOf(request, 'text'), memberOf(response, 'text')]
    if (typeof asked !== 'string' || typeof answered !== 'string') return []
    const { params } = parse(asked, at + 2)
    const answer = parse(answered, at + 2)
    const { _meta, ...rest } = jsonObject(params) ?? {}
    return [{ method, params: rest, ...('error' in answer ? { error: answer['error'] } : { result: answer['result'] }) }]
  })
  return { tools, calls }
}

const parse = (json: string, line: number): UnknownObject => {
  const value = parseJsonObject(json)
  if (value === undefined) throw new Error(`line ${line}: expected a JSON object`)
  return value
}

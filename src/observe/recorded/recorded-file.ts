/**
 * A recording: captured calls in a file, one line of JSON each, behind one that says what it is and which tools there were. `tail
 * --record` writes it, `mock` serves it. What was hidden when the calls were captured is hidden in it.
 */
import type { CallDetail } from '../capture/captured.ts'

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
  const header = parse(head, 1) as { trunkline?: unknown; format?: unknown; tools?: unknown }
  if (header.trunkline !== 'recording' || !Array.isArray(header.tools))
    throw new Error('line 1: this is no recording, as tail --record writes it')
  if (header.format !== FORMAT)
    throw new Error(`line 1: the recording has format ${String(header.format)}, this version reads ${FORMAT}`)
  const calls = lines.flatMap((line, at): RecordedCall[] => {
    const { method, request, response } = parse(line, at + 2) as Partial<CallDetail>
    if (typeof method !== 'string') throw new Error(`line ${at + 2}: this is no captured call`)
    if (request?.text === undefined || response?.text === undefined) return []
    const { params } = parse(request.text, at + 2) as { params?: Record<string, unknown> }
    const answer = parse(response.text, at + 2) as { result?: unknown; error?: unknown }
    const { _meta, ...rest } = params ?? {}
    return [{ method, params: rest, ...('error' in answer ? { error: answer.error } : { result: answer.result }) }]
  })
  return { tools: header.tools as unknown[], calls }
}

const parse = (json: string, line: number): object => {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Told below.
  }
  throw new Error(`line ${line}: expected a JSON object`)
}

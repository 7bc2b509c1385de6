/** One call as it was captured: the row that lists show, and what is behind it. Plain data; docs/admin-api.md describes it. */
import type { Deviation } from '../../rpc/record.ts'
import type { Era } from '../../wire/protocol/revisions.ts'
import type { KeptBody } from './body.ts'
import type { Change } from './diff.ts'
import type { CallOutcome } from '../ends.ts'

export type HostTransport = 'http' | 'sse' | 'stdio'

/** Milliseconds; `downstream`: a request was under way at the server; `host`: the host had to answer or to take; `gateway`: the rest. */
export interface TimeSplit {
  readonly total: number
  readonly host: number
  readonly gateway: number
  readonly downstream: number
}

export interface CallRow {
  readonly id: number
  /** ISO 8601, when it came. */
  readonly at: string
  readonly state: 'open' | 'done'
  /** What the host says it is. */
  readonly host: string | null
  /** `null`: a call of the command line or the dashboard. */
  readonly transport: HostTransport | null
  readonly era: Era
  readonly revision: string
  readonly principal: string
  /** Tells sessions apart; not the id of one. */
  readonly session: string | null
  readonly toolset: string | null
  readonly endpoint: string | null
  readonly method: string
  /** As the host named it: a tool, a prompt, a URI. */
  readonly name: string | null
  readonly server: string | null
  readonly original: string | null
  /** `null` while it is open. */
  readonly outcome: CallOutcome | null
  readonly error: { readonly kind: string | null; readonly code: number | null; readonly message: string | null } | null
  readonly ms: TimeSplit
  readonly bytesIn: number
  readonly bytesOut: number
  /** Estimate, of the answer. */
  readonly tokensOut: number
  /** Ids of rules by which it was translated. */
  readonly rules: readonly string[]
  readonly lanes: number
  readonly replayOf: number | null
  /** Of the trace of OpenTelemetry, where it is traced. */
  readonly traceId: string | null
}

/** Milliseconds since the call came; `null`: it did not come to that. */
export interface CallTimes {
  readonly received: number
  readonly started: number | null
  readonly slotted: number | null
  readonly sent: number | null
  readonly firstByte: number | null
  readonly done: number | null
  readonly answered: number | null
  readonly written: number | null
}

/** One request to a server, and its answer. */
export interface Lane {
  readonly kind: 'call' | 'retry' | 'round'
  readonly server: string | null
  readonly transport: 'pipe' | 'http' | 'sse'
  readonly era: Era
  readonly revision: string
  /** Our id at the server. */
  readonly requestId: number
  readonly sent: number
  readonly firstByte: number | null
  readonly done: number | null
  readonly end: 'result' | 'error' | 'lost' | 'open'
  readonly request?: KeptBody
  readonly response?: KeptBody
}

/** A question to the host, and how long its answer took. */
export interface Ask {
  readonly method: string
  readonly from: number
  readonly to: number | null
}

export interface CallDetail extends CallRow {
  readonly times: CallTimes
  readonly hops: readonly Lane[]
  readonly asks: readonly Ask[]
  readonly request?: KeptBody
  readonly response?: KeptBody
  readonly deviations: readonly Deviation[]
  /** `null`: a body is not kept whole. */
  readonly diff: { readonly request: readonly Change[]; readonly response: readonly Change[] } | null
}

/** A captured call as plain data: its row in lists, and its details. Described in docs/admin-api.md. */
import type { Deviation } from '../../rpc/record.ts'
import type { Era } from '../../wire/protocol/revisions.ts'
import type { KeptBody } from './body.ts'
import type { Change } from './diff.ts'
import type { CallOutcome } from '../outcomes.ts'

export type HostTransport = 'http' | 'sse' | 'stdio'

/** Milliseconds. `downstream`: waiting for the server; `host`: waiting for the host to answer or to accept data; `gateway`: the rest. */
export interface TimeSplit {
  readonly total: number
  readonly host: number
  readonly gateway: number
  readonly downstream: number
}

export interface CallRow {
  readonly id: number
  /** Time of receipt, ISO 8601. */
  readonly at: string
  readonly state: 'open' | 'done'
  /** Name and version of the host, self-reported. */
  readonly host: string | null
  /** `null`: a call of the command line or the dashboard. */
  readonly transport: HostTransport | null
  readonly era: Era
  readonly revision: string
  readonly principal: string
  /** Label that tells sessions apart; not the session's id. */
  readonly session: string | null
  readonly toolset: string | null
  readonly endpoint: string | null
  readonly method: string
  /** Tool, prompt or URI as the host sent it. */
  readonly name: string | null
  readonly server: string | null
  readonly original: string | null
  /** `null`: open. */
  readonly outcome: CallOutcome | null
  readonly error: { readonly kind: string | null; readonly code: number | null; readonly message: string | null } | null
  readonly ms: TimeSplit
  readonly bytesIn: number
  readonly bytesOut: number
  /** Estimated tokens of the answer. */
  readonly tokensOut: number
  /** Ids of the rules by which the call was translated. */
  readonly rules: readonly string[]
  readonly lanes: number
  readonly replayOf: number | null
  /** OpenTelemetry trace id; `null`: not traced. */
  readonly traceId: string | null
}

/** Milliseconds since receipt; `null`: the event did not happen. */
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

/** A server request to the host, in milliseconds since receipt of the call. */
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
  /** `null`: the messages were not kept whole. */
  readonly diff: { readonly request: readonly Change[]; readonly response: readonly Change[] } | null
}

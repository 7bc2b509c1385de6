/**
 * Everything that is known of one call: written while it is under way (`recording.ts`), kept once it has ended (`call-ring.ts`). Times are
 * monotonic milliseconds; `NaN`: it did not come to that.
 */
import type { Scope } from '../../rpc/call.ts'
import type { Deviation, Hop } from '../../rpc/record.ts'
import type { HostTransport, Lane } from './captured.ts'
import type { CallEnd } from '../ends.ts'
import type { CapturedMessage } from './message-memory.ts'

export const NEVER = Number.NaN

/** The other value where `ms` never came. */
export const msOr = (ms: number, other: number): number => (Number.isNaN(ms) ? other : ms)

/** One request to a server. */
export interface LaneFacts {
  readonly hop: Hop
  readonly id: number
  readonly kind: Lane['kind']
  readonly sentMs: number
  firstMs: number
  doneMs: number
  end: Lane['end']
  request: CapturedMessage | undefined
  response: CapturedMessage | undefined
}

/** A question to the host. */
export interface AskFacts {
  readonly method: string
  readonly fromMs: number
  toMs: number
}

export interface CallFacts {
  readonly id: number
  readonly method: string
  readonly principal: string
  readonly scope: Scope
  readonly revision: string
  /** Of a legacy session. */
  readonly sessionId: string | undefined
  /** What the host says it is: `Implementation`, as parsed JSON. */
  readonly clientInfo: unknown
  /** `undefined`: it came from no host. */
  readonly transport: HostTransport | undefined
  readonly replayOf: number | undefined
  /** As the host named it. */
  readonly name: string | undefined
  readonly server?: string | undefined
  readonly original?: string | undefined
  /** What it names is in the catalog; else its caller may have made the name up. */
  readonly isListed?: boolean
  readonly needsSignIn?: true
  readonly traceId: string | undefined
  /** Wall clock. */
  readonly atMs: number
  readonly receivedMs: number
  readonly startedMs: number
  readonly slottedMs: number
  readonly answeredMs: number
  readonly writtenMs: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly lanes: readonly LaneFacts[]
  readonly asks: readonly AskFacts[]
  readonly deviations: readonly Deviation[]
  /** `undefined`: it is under way. */
  readonly end: CallEnd | undefined
  readonly request: CapturedMessage | undefined
  readonly response: CapturedMessage | undefined
}

/** Milliseconds from its receipt to its answer; `nowMs` where there is none yet. */
export const totalMsOf = ({ writtenMs, receivedMs }: CallFacts, nowMs: number): number => msOr(writtenMs, nowMs) - receivedMs

/** All that is kept of its messages. */
export const messagesOf = ({ request, response, lanes = [] }: KeptMessages): CapturedMessage[] => {
  const messages: CapturedMessage[] = []
  if (request !== undefined) messages.push(request)
  if (response !== undefined) messages.push(response)
  for (const lane of lanes) {
    if (lane.request !== undefined) messages.push(lane.request)
    if (lane.response !== undefined) messages.push(lane.response)
  }
  return messages
}

interface KeptMessages extends Pick<CallFacts, 'request' | 'response'> {
  readonly lanes: readonly LaneFacts[] | undefined
}

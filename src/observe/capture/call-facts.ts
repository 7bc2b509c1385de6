/**
 * The facts of one call: recorded while it is in flight (`recording.ts`), kept after its end (`call-ring.ts`). Times are monotonic
 * milliseconds; `NaN`: the event did not happen.
 */
import type { Scope } from '../../rpc/call.ts'
import type { Deviation, Hop } from '../../rpc/record.ts'
import type { HostTransport, Lane } from './captured.ts'
import type { CallEnd } from '../call-end.ts'
import type { CapturedMessage } from './message-memory.ts'

export const NEVER = Number.NaN

/** Returns `other` for a time that is `NEVER`. */
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

/** A server request to the host. */
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
  /** `undefined`: not a legacy session. */
  readonly sessionId: string | undefined
  /** `Implementation` of the host, as parsed JSON. */
  readonly clientInfo: unknown
  /** `undefined`: not from a host. */
  readonly transport: HostTransport | undefined
  readonly replayOf: number | undefined
  /** Name or URI as the host sent it. */
  readonly name: string | undefined
  readonly server?: string | undefined
  readonly original?: string | undefined
  /** The name is in the catalog; otherwise the caller may have invented it. */
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
  /** `undefined`: in flight. */
  readonly end: CallEnd | undefined
  readonly request: CapturedMessage | undefined
  readonly response: CapturedMessage | undefined
}

/** Returns the milliseconds from receipt to answer, or to `nowMs` if there is no answer yet. */
export const totalMsOf = ({ writtenMs, receivedMs }: CallFacts, nowMs: number): number => msOr(writtenMs, nowMs) - receivedMs

/** Returns all kept messages of a call. */
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

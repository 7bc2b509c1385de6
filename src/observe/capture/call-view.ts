/** A call as it is shown: its row in lists, and its details. Built when it is read, not when the call ends. */
import type { Scope } from '../../rpc/call.ts'
import { sessionLabel } from '../../rpc/session-label.ts'
import { isModernRevision } from '../../wire/protocol/revisions.ts'
import { memberOf } from '../../values/json-object.ts'
import type { Hide } from './body.ts'
import { msOr, totalMsOf } from './call-facts.ts'
import type { AskFacts, CallFacts } from './call-facts.ts'
import type { Ask, CallDetail, CallRow, TimeSplit } from './captured.ts'
import { diffMessages } from './diff.ts'
import { isErrorOutcome } from '../outcomes.ts'

export interface CallViewOptions {
  readonly nowMs: () => number
  readonly toolsetOf: (scope: Scope) => string | undefined
  readonly hide: Hide
}

export const rowOf = (call: CallFacts, { nowMs, toolsetOf, hide }: CallViewOptions): CallRow => {
  const { end } = call
  return {
    id: call.id,
    at: new Date(call.atMs).toISOString(),
    state: end === undefined ? 'open' : 'done',
    host: hostOf(call.clientInfo),
    transport: call.transport ?? null,
    era: isModernRevision(call.revision) ? 'modern' : 'legacy',
    revision: call.revision,
    principal: call.principal,
    session: call.sessionId === undefined ? null : sessionLabel(call.sessionId),
    toolset: toolsetOf(call.scope) ?? null,
    endpoint: call.scope.server ?? null,
    method: call.method,
    name: call.name === undefined ? null : hide(call.name),
    server: call.server ?? null,
    original: call.original === undefined ? null : hide(call.original),
    outcome: end?.outcome ?? null,
    error:
      end !== undefined && isErrorOutcome(end.outcome)
        ? {
            kind: end.kind ?? end.reason ?? (call.needsSignIn ? 'auth_required' : null),
            code: end.code ?? null,
            message: end.detail === undefined ? null : hide(end.detail),
          }
        : null,
    ms: splitOf(call, nowMs()),
    bytesIn: call.bytesIn,
    bytesOut: call.bytesOut,
    tokensOut: Math.ceil(call.bytesOut / 4),
    rules: [...new Set(call.deviations.map(({ rule }) => rule))],
    lanes: call.lanes.length,
    replayOf: call.replayOf ?? null,
    traceId: call.traceId ?? null,
  }
}

export const detailOf = (call: CallFacts, options: CallViewOptions): CallDetail => {
  const since = (ms: number): number | null => (Number.isNaN(ms) ? null : round(ms - call.receivedMs))
  const sinceOf = (ms: number | undefined): number | null => (ms === undefined ? null : since(ms))
  const request = call.request?.shown(options.hide)
  const response = call.response?.shown(options.hide)
  const hops = call.lanes.map((lane) => ({
    kind: lane.kind,
    server: call.server ?? null,
    transport: lane.hop.transport,
    era: lane.hop.era,
    revision: lane.hop.revision,
    requestId: lane.id,
    sent: round(lane.sentMs - call.receivedMs),
    firstByte: since(lane.firstMs),
    done: since(lane.doneMs),
    end: lane.end,
    ...(lane.request && { request: lane.request.shown(options.hide) }),
    ...(lane.response && { response: lane.response.shown(options.hide) }),
  }))
  const [first, last] = [hops[0], hops.at(-1)]
  const down = request?.text === undefined || first?.request?.text === undefined
  const up = response?.text === undefined || last?.response?.text === undefined
  return {
    ...rowOf(call, options),
    times: {
      received: 0,
      started: since(call.startedMs),
      slotted: since(call.slottedMs),
      sent: first?.sent ?? null,
      firstByte: sinceOf(call.lanes.at(-1)?.firstMs),
      done: sinceOf(call.lanes.at(-1)?.doneMs),
      answered: since(call.answeredMs),
      written: since(call.writtenMs),
    },
    hops,
    asks: call.asks.map(({ method, fromMs, toMs }): Ask => ({ method, from: round(fromMs - call.receivedMs), to: since(toMs) })),
    ...(request && { request }),
    ...(response && { response }),
    deviations: call.deviations,
    diff:
      down && up
        ? null
        : {
            request: down ? [] : diffMessages(request?.text ?? '', first?.request?.text ?? '', 'down'),
            response: up ? [] : diffMessages(last?.response?.text ?? '', response?.text ?? '', 'up'),
          },
  }
}

/** Splits the time of a call. The host's part is its time for server requests and for accepting the answer. */
const splitOf = (call: CallFacts, nowMs: number): TimeSplit => {
  const total = totalMsOf(call, nowMs)
  const asked = askedIn(call, nowMs)
  let downstream = 0
  for (const { sentMs, doneMs } of call.lanes) {
    const endMs = msOr(doneMs, nowMs)
    downstream += endMs - sentMs
    for (const { fromMs, toMs } of asked) downstream -= Math.max(0, Math.min(toMs, endMs) - Math.max(fromMs, sentMs))
  }
  const thinking = asked.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0)
  const taking = Number.isNaN(call.answeredMs) ? 0 : msOr(call.writtenMs, nowMs) - call.answeredMs
  const host = thinking + taking
  return {
    total: round(total),
    host: round(host),
    gateway: round(Math.max(0, total - host - downstream)),
    downstream: round(downstream),
  }
}

/** The times in which the host was asked something; those of several requests at once are one. */
const askedIn = ({ asks }: CallFacts, nowMs: number): readonly Pick<AskFacts, 'fromMs' | 'toMs'>[] => {
  const joined: { readonly fromMs: number; toMs: number }[] = []
  // They are in the order of their beginnings.
  for (const { fromMs, toMs } of asks) {
    const last = joined.at(-1)
    const endMs = msOr(toMs, nowMs)
    if (last !== undefined && fromMs <= last.toMs) last.toMs = Math.max(last.toMs, endMs)
    else joined.push({ fromMs, toMs: endMs })
  }
  return joined
}

/** Rounds to a hundredth of a millisecond. */
const round = (ms: number): number => Math.round(ms * 100) / 100

const MAX_HOST_CHARACTERS = 100

const hostOf = (clientInfo: unknown): string | null => {
  const [name, version] = [memberOf(clientInfo, 'name'), memberOf(clientInfo, 'version')]
  if (typeof name !== 'string') return null
  return `${name}${typeof version === 'string' ? ` ${version}` : ''}`.slice(0, MAX_HOST_CHARACTERS).toWellFormed()
}

/** What must not be left of hosts that are gone: sessions, calls, rounds, connections, and the objects that stand for them. */
import { queryObjects } from 'node:v8'
import type { Running } from '../../../src/app/running.ts'
import { PendingCall } from '../../../src/era/server/pending-call.ts'
import { ParkedCall } from '../../../src/era/host/parked-call.ts'
import { PostExchange } from '../../../src/host/response/exchange.ts'
import { Session } from '../../../src/host/session/session.ts'
import { EventLog } from '../../../src/host/response/event-log.ts'
import type { Machine } from './builtins.ts'

/** Of which none may be reachable by anything at all. */
const GONE = [Session, EventLog, PostExchange, ParkedCall, PendingCall] as const

/** End of a finding that only a deep check makes. */
export const REFERRED_TO = 'that something refers to'

/** In words; `isDeep`: also looks for objects that something still refers to, which takes a whole garbage collection. */
export const leftOver = ({ front, gateway, context }: Running, { network }: Machine, isDeep: boolean): readonly string[] => {
  const counts: Readonly<Record<string, number>> = {
    sessions: front.sessionCount,
    'calls in flight': front.inFlight,
    'parked calls': gateway.parking.size,
    'bytes of messages': context.bodies.held.bytes,
    'connections of hosts': front.addresses.tcp.flatMap(({ port }) => network.at(port)).length,
  }
  const found = Object.entries(counts).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]))
  if (!isDeep) return found
  const objects = GONE.map((kind) => [kind.name, queryObjects(kind, { format: 'count' })] as const)
  return [...found, ...objects.flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name} ${REFERRED_TO}`]))]
}

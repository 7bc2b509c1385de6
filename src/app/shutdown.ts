/**
 * How a gateway ends: not ready, answers of hosts to questions, no new connections, no new calls, and then open calls, servers and shared
 * parts.
 */
import type { Fleet } from '../downstream/fleet.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Front } from '../host/http/front.ts'
import type { ListenerContext } from '../host/listener-context.ts'
import type { Replicas } from '../replicas/replicas.ts'
import { until } from '../time/within.ts'
import { CHILDREN_STOP_MS, untilAnswered } from './drain.ts'
import type { HostPipes } from './host-pipes.ts'

const POLL_MS = 20

export interface Ending {
  readonly context: Pick<ListenerContext, 'options'>
  readonly front: Front
  readonly pipes: HostPipes
  readonly replicas: Replicas | undefined
  readonly gateway: Gateway
  readonly fleet: Fleet
  /** Number of open calls of the embedding program itself. */
  readonly ownInFlight?: (() => number) | undefined
  /** Servers no longer wait for the capabilities of the only host of a pipe. */
  readonly giveUpSoleHost: () => void
  /** Closes shared parts, after hosts and servers. */
  readonly close: () => Promise<void>
}

/** `withinMs`: set if the process ends because of an internal error. */
export const shutDown = async (ending: Ending, withinMs: number | undefined): Promise<void> => {
  const { context, front, pipes, replicas, gateway, fleet } = ending
  const startMs = performance.now()
  // After an internal error it does not wait until proxies notice.
  const maxMs = withinMs === undefined ? Math.max(0, context.options.drainMs - CHILDREN_STOP_MS) : 0
  await front.announceEnd(maxMs)
  // Answers of hosts still arrive here. The other half of the remaining time is left for calls.
  const isAnswered = (): boolean => !front.isAsking && gateway.parking.size === 0
  await until(isAnswered, (maxMs - (performance.now() - startMs)) / 2, POLL_MS)
  await replicas?.handOver()
  // Calls are no longer parked: their answer could not arrive.
  gateway.parking.close()
  await Promise.all([front.addresses.stopAccepting(), pipes.drain()])
  front.drain()
  gateway.stop()
  const spentMs = performance.now() - startMs
  const inFlight = (): number => front.inFlight + pipes.inFlight + (ending.ownInFlight?.() ?? 0)
  await untilAnswered(inFlight, Math.min(context.options.drainMs - spentMs, withinMs ?? Infinity))
  const servers = fleet.stop()
  // Servers may still wait for the capabilities of a host that disconnected before its handshake.
  ending.giveUpSoleHost()
  // Calls in flight end with their link, and their hosts get an error before the connection closes (F-22).
  await servers
  await new Promise(setImmediate)
  await Promise.all([front.close(), pipes.close()])
  await ending.close()
}

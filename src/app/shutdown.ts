/** How a gateway ends: new connections first, then new calls, open calls, servers, and what all of them share. */
import type { Fleet } from '../downstream/fleet.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Front } from '../host/http/front.ts'
import type { ListenerContext } from '../host/listener-context.ts'
import type { Replicas } from '../replicas/replicas.ts'
import { CHILDREN_STOP_MS, untilAnswered } from './drain.ts'
import type { HostPipes } from './host-pipes.ts'

export interface Ending {
  readonly context: Pick<ListenerContext, 'options'>
  readonly front: Front
  readonly pipes: HostPipes
  readonly replicas: Replicas | undefined
  readonly gateway: Gateway
  readonly fleet: Fleet
  /** Servers wait no longer for what the one host of a pipe can. */
  readonly giveUpSoleHost: () => void
  /** Closes what is shared, once hosts and servers are gone. */
  readonly close: () => Promise<void>
}

/** `withinMs`: the process ends because of its own fault. */
export const shutDown = async (ending: Ending, withinMs: number | undefined): Promise<void> => {
  const { context, front, pipes, replicas, gateway, fleet } = ending
  const startMs = performance.now()
  // With a fault it does not wait until proxies notice it.
  await front.announceEnd(withinMs === undefined ? Math.max(0, context.options.drainMs - CHILDREN_STOP_MS) : 0)
  await replicas?.handOver()
  // Nothing is parked any more: the answer could not come back.
  gateway.parking.close()
  await Promise.all([front.addresses.stopAccepting(), pipes.drain()])
  front.drain()
  gateway.stop()
  const spentMs = performance.now() - startMs
  await untilAnswered(() => front.inFlight + pipes.inFlight, Math.min(context.options.drainMs - spentMs, withinMs ?? Infinity))
  const servers = fleet.stop()
  // A host that left without a word leaves servers waiting for what it can do.
  ending.giveUpSoleHost()
  // What is still under way ends with its link, and its host is told so before the connection goes (F-22).
  await servers
  await new Promise(setImmediate)
  await Promise.all([front.close(), pipes.close()])
  await ending.close()
}

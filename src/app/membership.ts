/** This process among others that share its sessions: replicas at URLs of their own, or workers of one machine (`listen.workers`). */
import { openInner } from '../host/http/inner-listener.ts'
import type { Front } from '../host/http/front.ts'
import { Replicas } from '../replicas/replicas.ts'
import { VERSION } from '../version.ts'
import type { Foundation } from './foundation.ts'

export interface Membership {
  /** `undefined`: there are no others. */
  readonly replicas: Replicas | undefined
  /** Serves requests that other workers pass on. */
  readonly serve: (front: Front) => void
  /** From now on the others may pass requests on to this process, and take over its sessions. */
  readonly start: (front: Front) => Promise<void>
  readonly close: () => Promise<void>
}

export const joinReplicas = async ({
  environment,
  inForce,
  instance,
  log,
  seal,
  store,
  clients,
}: Foundation): Promise<Membership> => {
  const { member, replicaTimes: times } = environment
  const { host, replicaUrl } = inForce.configuration
  const startedAtMs = Date.now()
  const inner = member && (await openInner(host, clients.bodies))
  const url = inner?.url ?? replicaUrl
  const replicas =
    url === undefined
      ? undefined
      : new Replicas({
          self: { instance, url },
          seal,
          store,
          log,
          isLocal: inner !== undefined,
          sessionMaxMs: () => inForce.configuration.host.limits.sessionMaxMs,
          ...(times !== undefined && { times }),
        })
  return {
    replicas,
    serve: (front) => inner?.serve((request) => front.receiveInner(request)),
    start: async (front) => {
      const facts = () => ({ version: VERSION, sessions: front.sessionCount, startedAtMs })
      if (inner === undefined) void replicas?.checkUrl()
      await replicas?.start(() => front.releaseTakenOver(), facts)
    },
    close: async () => {
      replicas?.close()
      await inner?.close()
    },
  }
}

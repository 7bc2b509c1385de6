/** The side of the hosts: what every listener gets, the HTTP listeners, and the pipes. */
import { CapabilityCache } from '../era/host/capability-cache.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { EndpointInfos } from '../host/endpoint-info.ts'
import { Front } from '../host/http/front.ts'
import { TOKEN_VARIABLE } from '../host/http/pages/status-page.ts'
import { Admission } from '../host/limits/admission.ts'
import type { ListenerContext } from '../host/listener-context.ts'
import { SessionIds } from '../host/session/session-ids.ts'
import { operatorCommand } from '../operator-command.ts'
import type { Replicas } from '../replicas/replicas.ts'
import { UnexpectedErrors } from '../rpc/unexpected-errors.ts'
import type { Foundation } from './foundation.ts'
import { HostPipes } from './host-pipes.ts'
import type { ServerCredentials } from './server-credentials.ts'
import { IDENTITY } from './servers.ts'
import { openSightings } from './state-folder.ts'
import { watchOverload } from './watched-overload.ts'

/** Its last three members change: they are set by the audit log, the traces and the watchers of calls. */
export type Context = ListenerContext & { -readonly [K in 'denied' | 'sessionOpened' | 'observer']: ListenerContext[K] }

export interface Hosts {
  readonly context: Context
  /** Listens nowhere yet. */
  readonly front: Front
  readonly pipes: HostPipes
  /** Resolves, with the reason, once the process cannot recover (F-30). */
  readonly exhausted: Promise<string>
  readonly close: () => Promise<void>
}

export const openHosts = (
  foundation: Foundation,
  gateway: Gateway,
  { fetch, signIns, subjects }: Pick<ServerCredentials, 'fetch' | 'signIns' | 'subjects'>,
  replicas: Replicas | undefined,
  nextRef: () => number,
): Hosts => {
  const { environment, inForce, log, limits, redactor, sweeper, seal, stateDir, store, clients } = foundation
  const { named } = inForce.configuration
  const { bodies } = clients
  const { overload, maxDescriptors, exhausted } = watchOverload(() => inForce.configuration.host.limits, log)
  sweeper.watch(overload)
  const sightings = openSightings(stateDir, log)
  const sessionIds = new SessionIds({
    seal,
    folder: stateDir,
    member: environment.member?.index,
    maxMs: () => inForce.configuration.host.limits.sessionMaxMs,
    home: replicas?.home,
    store,
    log,
  })
  const context: Context = {
    limits,
    unexpected: new UnexpectedErrors(log),
    admission: new Admission({
      get options() {
        return inForce.configuration.host
      },
      overload,
      bodies,
    }),
    core: gateway,
    endpointInfos: new EndpointInfos(IDENTITY),
    capabilityCache: new CapabilityCache(),
    get options() {
      return inForce.configuration.host
    },
    log,
    bodies,
    sessionIds,
    store,
    replicas,
    subjects,
    signIns,
    seal,
    overload,
    maxDescriptors,
    sighted:
      sightings && ((host, listing) => sightings.record(host, listing && gateway.feed.viewOf(listing).list('tools').rows.length)),
    guides: async (address, takesToken) => {
      const { connectGuides } = await import('../host-files/guides.ts')
      return connectGuides(address, takesToken ? TOKEN_VARIABLE : undefined)
    },
    hideJson: redactor.hideJson,
    command: (...words) => operatorCommand(named, ...words),
    nextRef,
    denied: undefined,
    sessionOpened: undefined,
    observer: undefined,
  }
  const front = new Front(context, sweeper, fetch)
  return {
    context,
    front,
    pipes: new HostPipes(context),
    exhausted,
    close: async () => {
      sessionIds.close()
      await sightings?.[Symbol.asyncDispose]()
    },
  }
}

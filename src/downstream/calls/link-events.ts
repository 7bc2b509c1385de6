/** Routes notifications and requests of a server to the hosts that may receive them (BRIDGING 3.0). */
import type { LinkEvents } from '../../era/server/link.ts'
import { isBridge } from '../../rpc/call.ts'
import type { Call, HostSession } from '../../rpc/call.ts'
import { TokenBucket } from '../../rpc/rate.ts'
import type { Rate } from '../../rpc/rate.ts'
import { ScanError } from '../../wire/json/scan-error.ts'
import { Payload } from '../../wire/message/payload.ts'
import { isTerminal } from '../../wire/protocol/extensions.ts'
import type { DownstreamEnvironment } from '../environment.ts'
import { listeners } from '../link-owner.ts'
import type { LinkOwner } from '../link-owner.ts'
import type { LinkReports } from '../link-reports.ts'
import type { ServerOptions } from '../options.ts'
import type { ServerRequests } from './server-requests.ts'
import { firstWords } from '../../values/cut-text.ts'

interface LinkEventSource {
  /** `Downstream.id` */
  readonly id: string
  readonly options: () => ServerOptions
  readonly environment: Pick<DownstreamEnvironment, 'limits' | 'listAnnounced' | 'log' | 'logs' | 'soleHost' | 'taskChanged'>
  readonly requests: ServerRequests
  /** Number of pending calls of hosts, on all links. */
  readonly callCount: () => number
  /** `soleSession`: the session of the only host of a pipe, if it is legacy. */
  readonly states: { readonly now: { readonly soleSession: HostSession | undefined } }
  readonly reports: LinkReports
}

export class LinkEventHandlers {
  readonly #source: LinkEventSource

  constructor(source: LinkEventSource) {
    this.#source = source
  }

  /** Events of the main link. It serves no host, so that requests are declined (B263, B295), except for the only host of a pipe. */
  onMain(): LinkEvents {
    const { environment, requests, reports, states, options, callCount } = this.#source
    const soleSession = (): HostSession | undefined => states.now.soleSession
    const isSole = environment.soleHost !== undefined
    const mayLog = this.#logLimit()
    const host = (): HostSession | undefined => bridged(soleSession())
    /** Several links to a URL may lead to one process; a command is started for each link. */
    const isCalledElsewhere = (): boolean => options().url !== undefined && callCount() > 0
    return {
      ...this.#onAny(undefined, host),
      updated: (uri, params) =>
        notifyIfPresent(host(), UPDATED, params) || reports.send({ type: 'updated', uri, params, owner: undefined }),
      message: (params, call, isOfPeer) => {
        if (!mayLog(params)) return
        if (call !== undefined) call.notify(LOGGED, this.#labelledFor(call, params), isOfPeer)
        else soleSession()?.notify(LOGGED, host() === undefined ? this.#labelled(params) : params)
      },
      vendor: (method, params, call) => relayVendor(method, params, call, [soleSession()]),
      ask: async (question, call) =>
        isSole
          ? requests.ask(question, { call, waiting: call, session: soleSession(), only: host() })
          : requests.decline(question, isCalledElsewhere()),
      elicitationComplete: (id, params) => notifyIfPresent(host(), COMPLETED, params) || requests.completed(id, soleSession()),
      ...(isSole && { isOfOneHost: true }),
      ...(isSole && { isHostStalled: (on) => (soleSession() ?? on.onlyCall()?.responseChannel?.flow)?.isStalled === true }),
    }
  }

  /** Events of a link that only reads lists. Servers that report updates on every link report them on the main link, too. */
  onLists(): LinkEvents {
    return { ...this.onMain(), updated: () => undefined }
  }

  /** Events of a caller's link. On a link of several principals only calls are asked, and messages outside of calls are dropped (B051, B052). */
  onLinkOf(owner: LinkOwner): LinkEvents {
    const { requests, reports } = this.#source
    const mayLog = this.#logLimit()
    /** The only host of the link at a bridge, which gets everything unchanged (B277). */
    const host = (): HostSession | undefined => (owner.isolation === 'session' ? bridged(owner.latest) : undefined)
    return {
      ...this.#onAny(owner, host),
      updated: (uri, params) => notifyIfPresent(host(), UPDATED, params) || reports.send({ type: 'updated', uri, params, owner }),
      message: (params, call) => {
        if (!mayLog(params)) return
        if (call !== undefined) return call.notify(LOGGED, this.#labelledFor(call, params))
        let labelled: Payload | undefined
        for (const session of listeners(owner))
          session.notify(LOGGED, isBridge(session.scope) ? params : (labelled ??= this.#labelled(params.fresh())))
      },
      vendor: (method, params, call) => relayVendor(method, params, call, listeners(owner)),
      ask: (question, call) =>
        owner.isolation === 'shared'
          ? requests.ask(question, {})
          : requests.ask(question, { call, waiting: [...owner.waiting].at(-1), session: owner.latest, only: host() }),
      ...(owner.isolation === 'session' && { isHostStalled: () => owner.latest?.isStalled === true }),
      elicitationComplete: (id, params) =>
        notifyIfPresent(host(), COMPLETED, params) ||
        requests.completed(id, owner.isolation === 'session' ? owner.latest : undefined),
    }
  }

  /** Logs at `debug`. `error`: an unexpected error is logged at `error` with its stack; invalid JSON of a server is none. */
  logFault(reason: string, sample: string, error?: unknown): void {
    const { options, environment } = this.#source
    const facts = { server: options().key, sample: firstWords(sample, 200) }
    if (error === undefined) environment.log.debug(facts, reason)
    else if (error instanceof ScanError || error instanceof SyntaxError)
      environment.log.debug({ ...facts, error: error.message }, reason)
    else environment.log.error({ ...facts, error: error instanceof Error ? error.stack : 'no error object' }, reason)
  }

  #onAny(
    owner: LinkOwner | undefined,
    host: () => HostSession | undefined,
  ): Omit<LinkEvents, 'ask' | 'elicitationComplete' | 'message' | 'updated' | 'vendor'> {
    const { id, options, environment, reports } = this.#source
    return {
      listChanged: (list) => {
        environment.listAnnounced(options().key, list, owner)
        reports.send({ type: 'list-announced', list, owner })
      },
      taskChanged: (task) => {
        if (isTerminal(task.text('status'))) reports.send({ type: 'task-ended', id: task.text('taskId') ?? '', owner })
        if (!notifyIfPresent(host(), 'notifications/tasks/status', task)) environment.taskChanged(id, task, owner)
      },
      violation: (reason, sample, error) => this.logFault(reason, sample, error),
      refused: (error, era) => reports.send({ type: 'refused', error, era }),
    }
  }

  /** For one link: returns whether another log message may be relayed now (`limits.log_messages`), and stores it for `trunkline logs`. */
  #logLimit(): (params: Payload) => boolean {
    const { options, environment } = this.#source
    const maxLogMessages = (): Rate => options().limits.maxLogMessages
    let rate = maxLogMessages()
    let bucket = new TokenBucket(rate)
    return (params) => {
      if (rate !== maxLogMessages()) bucket = new TokenBucket((rate = maxLogMessages()))
      const nowMs = performance.now()
      const isAllowed = bucket.waitMs(nowMs) === 0
      if (isAllowed) {
        bucket.take(nowMs)
        environment.logs.logged(options().key, options().limits.maxStderrBytes, params)
      } else environment.limits.hit('limits.log_messages', options().key)
      return isAllowed
    }
  }

  #labelledFor({ caller }: Call, params: Payload): Payload {
    return isBridge(caller.scope) ? params : this.#labelled(params)
  }

  /** Adds the server key to the logger of a log message (BRIDGING 2.3). */
  #labelled(params: Payload): Payload {
    const { key } = this.#source.options()
    const logger = params.text('logger')
    params.set('logger', JSON.stringify(logger === undefined ? key : `${key}/${logger}`))
    return params
  }
}

const UPDATED = 'notifications/resources/updated'
const LOGGED = 'notifications/message'
const COMPLETED = 'notifications/elicitation/complete'

const bridged = (session: HostSession | undefined): HostSession | undefined =>
  session !== undefined && isBridge(session.scope) ? session : undefined

/** Notifies the host; false if there is none. */
const notifyIfPresent = (host: HostSession | undefined, method: string, params: Payload): boolean => {
  host?.notify(method, params)
  return host !== undefined
}

/** Relays a notification that no revision defines to hosts at a bridge; others do not get it (BRIDGING 2.3, 3.21). */
const relayVendor = (
  method: string,
  params: Payload | undefined,
  call: Call | undefined,
  sessions: readonly (HostSession | undefined)[],
): void => {
  if (call !== undefined && isBridge(call.caller.scope)) return call.notify(method, params ?? Payload.of({}))
  for (const session of sessions) if (session !== undefined && isBridge(session.scope)) session.notify(method, params)
}

/** What becomes of what a server says and asks on its links by itself: who is told, who is asked, and who must not be (BRIDGING 3.0). */
import type { LinkEvents } from '../../era/server/link.ts'
import { isBridge } from '../../rpc/call.ts'
import type { Call, HostSession } from '../../rpc/call.ts'
import { TokenBucket } from '../../rpc/rate.ts'
import type { Rate } from '../../rpc/rate.ts'
import { Payload } from '../../wire/message/payload.ts'
import { isTerminal } from '../../wire/protocol/extensions.ts'
import type { DownstreamEnvironment } from '../environment.ts'
import { listeners } from '../link-owner.ts'
import type { LinkOwner } from '../link-owner.ts'
import type { LinkReports } from '../link-reports.ts'
import type { ServerOptions } from '../options.ts'
import type { ServerRequests } from './server-requests.ts'

/** What of a server this needs. */
export interface LinkEventSource {
  /** The key, and the principal where each has its own. */
  readonly id: string
  readonly options: () => ServerOptions
  readonly environment: Pick<DownstreamEnvironment, 'limits' | 'listAnnounced' | 'log' | 'logs' | 'soleHost' | 'taskChanged'>
  readonly requests: ServerRequests
  /** Calls of hosts that are under way, on all links. */
  readonly callCount: () => number
  /** `soleSession`: of a stdio front whose host is legacy. */
  readonly states: { readonly now: { readonly soleSession: HostSession | undefined } }
  readonly reports: LinkReports
}

export class LinkEventHandlers {
  readonly #source: LinkEventSource

  constructor(source: LinkEventSource) {
    this.#source = source
  }

  /** The main link of a legacy server serves no host: what it asks is declined (B263, B295). With a sole host it is its link. */
  onMain(): LinkEvents {
    const { environment, requests, reports, states, options, callCount } = this.#source
    const soleSession = (): HostSession | undefined => states.now.soleSession
    const isSole = environment.soleHost !== undefined
    const mayLog = this.#logLimit()
    const host = (): HostSession | undefined => bridged(soleSession())
    /** Links to a URL may lead to one process; a command is started for each. */
    const isCalledElsewhere = (): boolean => options().url !== undefined && callCount() > 0
    return {
      ...this.#onAny(undefined, host),
      updated: (uri, params) =>
        tellOnly(host(), UPDATED, params) || reports.send({ type: 'updated', uri, params, owner: undefined }),
      message: (params, call, isOfPeer) => {
        if (!mayLog(params)) return
        if (call !== undefined) call.notify(LOGGED, this.#labelledFor(call, params), isOfPeer)
        else tellOnly(soleSession(), LOGGED, host() === undefined ? this.#labelled(params) : params)
      },
      vendor: (method, params, call) => passVendor(method, params, call, [soleSession()]),
      ask: async (question, call) =>
        isSole
          ? requests.ask(question, { call, waiting: call, session: soleSession(), only: host() })
          : requests.decline(question, isCalledElsewhere()),
      elicitationComplete: (id, params) => tellOnly(host(), COMPLETED, params) || requests.completed(id, soleSession()),
      ...(isSole && { isHostStalled: (on) => (soleSession() ?? on.onlyCall()?.responseChannel?.flow)?.isStalled === true }),
    }
  }

  /** On a link that principals share, only a call is asked for input, and messages that belong to no call are dropped (B051, B052). */
  onLinkOf(owner: LinkOwner): LinkEvents {
    const { requests, reports } = this.#source
    const mayLog = this.#logLimit()
    /** The host at a bridge that the link serves alone: it is told everything as it came (B277). */
    const host = (): HostSession | undefined => (owner.isolation === 'session' ? bridged(owner.latest) : undefined)
    return {
      ...this.#onAny(owner, host),
      updated: (uri, params) => tellOnly(host(), UPDATED, params) || reports.send({ type: 'updated', uri, params, owner }),
      message: (params, call) => {
        if (!mayLog(params)) return
        if (call !== undefined) return call.notify(LOGGED, this.#labelledFor(call, params))
        let labelled: Payload | undefined
        for (const session of listeners(owner))
          session.notify(LOGGED, isBridge(session.scope) ? params : (labelled ??= this.#labelled(params.fresh())))
      },
      vendor: (method, params, call) => passVendor(method, params, call, listeners(owner)),
      ask: (question, call) =>
        owner.isolation === 'shared'
          ? requests.ask(question, {})
          : requests.ask(question, { call, waiting: [...owner.waiting].at(-1), session: owner.latest, only: host() }),
      ...(owner.isolation === 'session' && { isHostStalled: () => owner.latest?.isStalled === true }),
      elicitationComplete: (id, params) =>
        tellOnly(host(), COMPLETED, params) || requests.completed(id, owner.isolation === 'session' ? owner.latest : undefined),
    }
  }

  /** Logs at `debug`; with `error`, an unexpected error of the gateway, at `error` with its stack. */
  logFault(reason: string, sample: string, error?: unknown): void {
    const { options, environment } = this.#source
    const facts = { server: options().key, sample: sample.slice(0, 200) }
    if (error === undefined) environment.log.debug(facts, reason)
    else
      environment.log.error(
        { ...facts, error: error instanceof Error ? (error.stack ?? error.message) : 'no error object' },
        reason,
      )
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
        if (!tellOnly(host(), 'notifications/tasks/status', task)) environment.taskChanged(id, task, owner)
      },
      violation: (reason, sample, error) => this.logFault(reason, sample, error),
      refused: (error, era) => reports.send({ type: 'refused', error, era }),
    }
  }

  /** Of one link: whether another log message may be relayed now (`limits.log_messages`); then it is kept for `trunkline logs`, too. */
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

  /** Log messages say which server they are from (BRIDGING 2.3). */
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

/** False: there is no such host. */
const tellOnly = (host: HostSession | undefined, method: string, params: Payload): boolean => {
  host?.notify(method, params)
  return host !== undefined
}

/** What no revision defines is between a host at a bridge and its server; elsewhere it has no recipient (BRIDGING 2.3, 3.21). */
const passVendor = (
  method: string,
  params: Payload | undefined,
  call: Call | undefined,
  sessions: readonly (HostSession | undefined)[],
): void => {
  if (call !== undefined && isBridge(call.caller.scope)) return call.notify(method, params ?? Payload.of({}))
  for (const session of sessions) if (session !== undefined && isBridge(session.scope)) session.notify(method, params)
}

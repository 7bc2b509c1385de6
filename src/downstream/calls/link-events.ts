/** What becomes of what a server says and asks on its links by itself: who is told, who is asked, and who must not be (BRIDGING 3.0). */
import type { ChangedList, LinkEvents } from '../../era/server/link.ts'
import { isBridge } from '../../rpc/call.ts'
import type { Call, HostSession } from '../../rpc/call.ts'
import { TokenBucket } from '../../rpc/rate.ts'
import type { Rate } from '../../rpc/rate.ts'
import { Payload } from '../../wire/message/payload.ts'
import { isTerminal } from '../../wire/protocol/tasks.ts'
import type { Asking } from './server-requests.ts'
import type { DownstreamEnvironment } from '../environment.ts'
import { listeners } from '../link-owner.ts'
import type { LinkOwner } from '../link-owner.ts'

/** What of a server this needs. */
export interface HearingSource {
  /** The key, and the principal where each has his own. */
  readonly id: string
  readonly key: string
  readonly maxLogMessages: () => Rate
  /** Of `trunkline logs`, for this server. */
  readonly maxLogBytes: () => number
  readonly environment: Pick<DownstreamEnvironment, 'limits' | 'listAnnounced' | 'log' | 'logs' | 'soleHost' | 'taskChanged'>
  /** A resource changed. `owner`: of the link that it was said on, unless that is the main one. */
  readonly updated: (uri: string, params: Payload, owner: LinkOwner | undefined) => void
  readonly asking: Asking
  /** Of a stdio front whose host is legacy. */
  readonly soleSession: () => HostSession | undefined
  /** `owner`: of the link that announced it; `undefined`: a link that serves no host. */
  readonly outdated: (list: ChangedList, owner: LinkOwner | undefined) => void
  /** `owner`: of the link that announced it; `undefined`: a link that serves no host. */
  readonly taskEnded: (id: string, owner: LinkOwner | undefined) => void
  /** See `LinkEvents`. */
  readonly refused: (error: unknown) => void
}

export class Hearing {
  readonly #source: HearingSource

  constructor(source: HearingSource) {
    this.#source = source
  }

  /** The main link of a legacy server serves no host: what it asks is declined (B263, B295). With a sole host it is its link. */
  onMain(): LinkEvents {
    const { environment, asking, soleSession, updated } = this.#source
    const isSole = environment.soleHost !== undefined
    const mayLog = this.#logLimit()
    const host = (): HostSession | undefined => bridged(soleSession())
    return {
      ...this.#onAny(undefined, host),
      updated: (uri, params) => tellOnly(host(), UPDATED, params) || updated(uri, params, undefined),
      message: (params, call, isOfPeer) => {
        if (!mayLog(params)) return
        if (call !== undefined) call.notify(LOGGED, this.#labelledFor(call, params), isOfPeer)
        else tellOnly(soleSession(), LOGGED, host() === undefined ? this.#labelled(params) : params)
      },
      vendor: (method, params, call) => passVendor(method, params, call, [soleSession()]),
      ask: async (question, call) =>
        isSole ? asking.ask(question, { call, waiting: call, session: soleSession(), only: host() }) : asking.decline(question),
      elicitationComplete: (id, params) => tellOnly(host(), COMPLETED, params) || asking.completed(id, soleSession()),
      ...(isSole && { isHostStalled: (on) => (soleSession() ?? on.onlyCall()?.way?.flow)?.isStalled === true }),
    }
  }

  /** On a link that principals share, only a call is asked for input, and messages that belong to no call are dropped (B051, B052). */
  onLinkOf(owner: LinkOwner): LinkEvents {
    const { asking, updated } = this.#source
    const mayLog = this.#logLimit()
    /** The host at a bridge that the link serves alone: it is told everything as it came (B277). */
    const host = (): HostSession | undefined => (owner.isolation === 'session' ? bridged(owner.latest) : undefined)
    return {
      ...this.#onAny(owner, host),
      updated: (uri, params) => tellOnly(host(), UPDATED, params) || updated(uri, params, owner),
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
          ? asking.ask(question, {})
          : asking.ask(question, { call, waiting: [...owner.waiting].at(-1), session: owner.latest, only: host() }),
      ...(owner.isolation === 'session' && { isHostStalled: () => owner.latest?.isStalled === true }),
      elicitationComplete: (id, params) =>
        tellOnly(host(), COMPLETED, params) || asking.completed(id, owner.isolation === 'session' ? owner.latest : undefined),
    }
  }

  /** Logs at `debug`; with `error`, an unexpected error of the gateway, at `error` with its stack. */
  logFault(reason: string, sample: string, error?: unknown): void {
    const { key, environment } = this.#source
    const facts = { server: key, sample: sample.slice(0, 200) }
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
    const { id, key, environment, outdated, refused, taskEnded } = this.#source
    return {
      listChanged: (list) => {
        environment.listAnnounced(key, list, owner)
        outdated(list, owner)
      },
      taskChanged: (task) => {
        if (isTerminal(task.text('status'))) taskEnded(task.text('taskId') ?? '', owner)
        if (!tellOnly(host(), 'notifications/tasks/status', task)) environment.taskChanged(id, task, owner)
      },
      violation: (reason, sample, error) => this.logFault(reason, sample, error),
      refused,
    }
  }

  /** Of one link: whether another log message may be relayed now (`limits.log_messages`); then it is kept for `trunkline logs`, too. */
  #logLimit(): (params: Payload) => boolean {
    const { key, environment, maxLogBytes, maxLogMessages } = this.#source
    let rate = maxLogMessages()
    let bucket = new TokenBucket(rate)
    return (params) => {
      if (rate !== maxLogMessages()) bucket = new TokenBucket((rate = maxLogMessages()))
      const nowMs = performance.now()
      const isAllowed = bucket.waitMs(nowMs) === 0
      if (isAllowed) {
        bucket.take(nowMs)
        environment.logs.logged(key, maxLogBytes(), params)
      } else environment.limits.hit('limits.log_messages', key)
      return isAllowed
    }
  }

  #labelledFor({ caller }: Call, params: Payload): Payload {
    return isBridge(caller.scope) ? params : this.#labelled(params)
  }

  /** Log messages say which server they are from (BRIDGING 2.3). */
  #labelled(params: Payload): Payload {
    const { key } = this.#source
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

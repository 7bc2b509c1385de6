/**
 * Maps tasks between hosts and servers: hosts see ids of the gateway, servers their own ids. Each request about a task goes to the
 * server that runs it, for the principal that created it only (BRIDGING 3.17).
 */
import { TaskIds } from '../../auth/task-ids.ts'
import type { Seal } from '../../auth/seal.ts'
import { exposeErrorUri, exposeResult } from '../../catalog/view/expose-result.ts'
import { exposedUri } from '../../catalog/view/routes.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import type { Reconnected } from '../../downstream/environment.ts'
import type { Fleet } from '../../downstream/fleet.ts'
import type { LinkOwner } from '../../downstream/link-owner.ts'
import { tasksNotDeclared } from '../../era/host/modern-host.ts'
import { project } from '../../era/host/projections.ts'
import { relatedTask, relateTo, unrelate } from '../../era/task-shapes.ts'
import { complete, Refusal, ServerError, ownCall } from '../../rpc/call.ts'
import type { Call, Caller, Outcome } from '../../rpc/call.ts'
import { noteDenial, noteRoute } from '../../rpc/record.ts'
import type { Affected } from '../../rpc/fidelity.ts'
import { META } from '../../wire/protocol/meta.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { declaresTasks, isTerminal } from '../../wire/protocol/extensions.ts'
import { Asked } from '../rounds/asked.ts'
import { isRelayedUnchanged } from '../bridges.ts'
import type { Feed } from '../lists/feed.ts'
import { TaskListeners } from './task-listeners.ts'
import type { TaskSubscriber } from './task-listeners.ts'
import { TaskRuns } from './task-runs.ts'
import { askerOf, encodeRequests } from '../rounds/encode-requests.ts'

/** A task of one host, and the server that runs it. */
interface Seen {
  readonly downstream: Downstream
  readonly original: string
  readonly exposed: string
  readonly caller: Caller
}

export class Tasks {
  readonly #ids: TaskIds
  readonly #feed: Feed
  readonly #fleet: Pick<Fleet, 'bridged' | 'find' | 'for'>
  readonly #listeners = new TaskListeners()
  readonly runs: TaskRuns

  constructor(seal: Seal, feed: Feed, fleet: Pick<Fleet, 'bridged' | 'find' | 'for'>, offersTasks: () => boolean) {
    this.runs = new TaskRuns(offersTasks, (call, downstream, isKnown) => this.#notifierOf(call, downstream, isKnown))
    this.#ids = new TaskIds(seal)
    this.#feed = feed
    this.#fleet = fleet
  }

  /** Handles `tasks/get`, `tasks/update`, `tasks/result` and `tasks/cancel`. */
  async serve(call: Call): Promise<Outcome> {
    const { caller, params } = call
    if (caller.session === undefined && !declaresTasks(caller.capabilities)) throw tasksNotDeclared()
    const seen = this.#open(caller, call.target)
    if (seen === undefined) {
      noteDenial(call, 'unknown')
      throw new Refusal(-32602, 'invalid or expired task')
    }
    const { downstream, original } = seen
    noteRoute(call, downstream.options.key, original)
    params.set('taskId', JSON.stringify(original))
    const asked = this.asked(call, downstream)
    const responses = params.object('inputResponses')?.fresh()
    if (call.method === 'tasks/update' && responses === undefined)
      throw new Refusal(-32602, 'params.inputResponses must be an object')
    const served: Call = {
      ...call,
      target: original,
      resume: responses && { state: undefined, responses },
      notify: this.#notifierOf(call, downstream, true),
      ask: asked.ask,
    }
    const outcome = await downstream.handle(served).catch((error: unknown) => {
      if (error instanceof ServerError) this.#exposeError(error.error, seen)
      throw error
    })
    if (outcome.result instanceof Payload) this.#expose(outcome.result, call.method, seen)
    return call.method === 'tasks/result' ? complete(project(outcome.result, call, downstream.fidelity, plainOutput)) : outcome
  }

  /** A server turned a call into a task: gives the task an id of the gateway. */
  created(result: Payload, call: Call, downstream: Downstream): void {
    const { caller } = call
    const { key } = downstream.options
    if (caller.session === undefined && downstream.link?.era === 'legacy') downstream.fidelity.note('taskByExtension', call)
    const original = result.text('taskId') ?? ''
    const exposed = isRelayedUnchanged(caller, downstream) ? original : this.#ids.expose(caller.principal, key, original)
    if (caller.session !== undefined)
      this.#listeners.created(caller.session, downstream.id, original, exposed, result.value('ttlMs'))
    this.#expose(result, 'tools/call', { downstream, original, exposed, caller })
  }

  /** The questions of one call, with task ids translated for the host (B182). */
  asked(call: Call, downstream: Downstream, view = this.#feed.viewOf(call.caller)): Asked {
    return new Asked(call, downstream, view, this.#ids)
  }

  own(caller: Caller, ids: readonly string[]): string[] {
    return ids.filter((id) => this.#open(caller, id) !== undefined)
  }

  /** False: the server of the task does not send its changes, or the task is not of this caller. */
  async follow(subscriber: TaskSubscriber, caller: Caller, id: string): Promise<boolean> {
    const seen = this.#open(caller, id)
    if (seen === undefined) return false
    return this.#listeners.add(subscriber, { exposed: id, caller }, seen.downstream.subscriptions, seen.original)
  }

  release(subscriber: TaskSubscriber): void {
    this.#listeners.release(subscriber)
  }

  restore(downstream: Reconnected): void {
    this.#listeners.restore(downstream)
  }

  /** A server reports a changed task: its creator and followers are notified under the ids they know; `owner`: of the link. */
  async changed(id: string, task: Payload, owner: LinkOwner | undefined): Promise<void> {
    const downstream = this.#fleet.find(id)
    const original = task.text('taskId')
    if (downstream === undefined || original === undefined) return
    const hasEnded = isTerminal(task.text('status'))
    for (const { session, exposed, forget } of this.#listeners.creatorsOf(id, original)) {
      if (owner !== undefined && !owner.sessions.has(session)) continue
      const copy = task.fresh()
      copy.set('taskId', JSON.stringify(exposed))
      if (relatedTask(copy) !== undefined) relateTo(copy, exposed)
      session.notify('notifications/tasks/status', copy)
      if (hasEnded) forget()
    }
    for (const [subscriber, { exposed, caller }] of this.#listeners.followersOf(id, original)) {
      if (owner !== undefined && owner.isolation !== 'shared' && owner.principal !== caller.principal) continue
      const whole = task.has('ttlMs') ? task.fresh() : await readTask(original, caller, downstream).catch(() => undefined)
      // The stream may have ended while the task was read.
      if (whole === undefined || !this.#listeners.isFollowing(subscriber, id, original)) continue
      this.#expose(whole, 'tasks/get', { downstream, original, exposed, caller })
      subscriber.task?.(whole)
      if (hasEnded) this.#listeners.over(subscriber, id, original)
    }
  }

  #open(caller: Caller, exposed: string | undefined): Seen | undefined {
    const bridged = this.#fleet.bridged(caller)
    if (exposed !== undefined && bridged !== undefined && isRelayedUnchanged(caller, bridged))
      return { downstream: bridged, original: exposed, exposed, caller }
    const opened = exposed === undefined ? undefined : this.#ids.open(caller.principal, exposed)
    const downstream = opened && this.#fleet.for(opened.server, caller.principal)
    if (exposed === undefined || opened === undefined || downstream === undefined) return undefined
    const isInScope = caller.scope.server === undefined || caller.scope.server === opened.server
    return isInScope && this.#feed.viewOf(caller).sees(opened.server)
      ? { downstream, original: opened.original, exposed, caller }
      : undefined
  }

  /** Rewrites a task, or the result of a task, for this host. */
  #expose(result: Payload, method: string, { downstream, exposed, caller }: Seen): void {
    const view = this.#feed.viewOf(caller)
    if (result.has('taskId')) result.set('taskId', JSON.stringify(exposed))
    if (relatedTask(result) !== undefined) relateTo(result, exposed)
    result.delete('requestState')
    const affected: Affected = { ref: 0, method: 'tools/call', caller }
    encodeRequests(result, askerOf(downstream, view, caller), caller, (deviation) =>
      downstream.fidelity.note(deviation, affected),
    )
    const error = result.object('error')
    if (error !== undefined) this.#exposeError(error, { downstream, caller })
    const inner = method === 'tasks/result' ? result : result.object('result')
    if (inner !== undefined) {
      if (method === 'tasks/result' || relatedTask(inner) !== undefined) relateTo(inner, exposed)
      if (view.mayRenameUris(downstream.options))
        exposeResult(inner, 'content', (uri) => exposedUri(view, downstream.options, uri))
      if (method !== 'tasks/result') project(inner, affected, downstream.fidelity, plainOutput)
    }
    if (caller.session === undefined && method !== 'tools/call' && view.catalog.sources.length > 1)
      result.setIn('_meta', META.server, JSON.stringify(downstream.options.key))
  }

  /** Translates the task that a notification of the server belongs to; removes it for a host that does not know the task (B182). */
  #notifierOf(call: Call, downstream: Downstream, isKnown: boolean): Call['notify'] {
    return (method, params, isOfPeer) => {
      const task = relatedTask(params)
      if (task !== undefined && isKnown) relateTo(params, this.#ids.expose(call.caller.principal, downstream.options.key, task))
      else if (task !== undefined) unrelate(params)
      call.notify(method, params, isOfPeer)
    }
  }

  #exposeError(error: Payload, { downstream, caller }: Pick<Seen, 'downstream' | 'caller'>): void {
    const view = this.#feed.viewOf(caller)
    if (view.mayRenameUris(downstream.options)) exposeErrorUri(error, (uri) => exposedUri(view, downstream.options, uri))
  }
}

/** Legacy hosts get results by `tasks/result` only from legacy servers; modern hosts accept any form. */
const plainOutput = (): 'plain' => 'plain'

/** Reads a task in the form of the extension; a legacy server's notification contains less. */
const readTask = async (original: string, caller: Caller, downstream: Downstream): Promise<Payload> => {
  const params = Payload.of({ taskId: original })
  const { signal } = new AbortController()
  const call = ownCall({ ref: 0, method: 'tasks/get', target: original, params, caller, signal })
  const { result } = await downstream.handle(call)
  return Payload.at(join(result.parts()))
}

/**
 * `subscriptions/listen` of modern hosts: sends the acknowledgement, then the requested notifications, each tagged with the id of the
 * request ([2026-07-28 basic/patterns/subscriptions]; BRIDGING 3.7).
 */
import { tasksNotDeclared } from '../era/host/modern-host.ts'
import { Refusal } from '../rpc/call.ts'
import type { Caller, ChangeListener } from '../rpc/call.ts'
import type { CancelSignal } from '../rpc/cancellation.ts'
import { within } from '../time/within.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { notificationMessage, resultMessage } from '../wire/message/message.ts'
import { META } from '../wire/protocol/meta.ts'
import { Payload } from '../wire/message/payload.ts'
import { declaresTasks } from '../wire/protocol/extensions.ts'
import { NOTHING, reached } from './limits/admission.ts'
import type { Exchange } from './response/exchange.ts'
import type { Subscriber } from './core.ts'
import type { ListenerContext } from './listener-context.ts'
import type { ChangedList } from '../wire/protocol/methods.ts'
import { CHANGED_LISTS, listChangedMethod } from '../wire/protocol/methods.ts'

/** The peer of a pipe: a host, or an attached `trunkline stdio`, which outlives this process. */
export type PipeEnd = 'host' | 'relay'

/** Serves one stream until `signal` fires (the host has disconnected) or the gateway ends it. */
export const serveSubscriptions = (
  message: Envelope,
  caller: Caller,
  exchange: Exchange,
  signal: CancelSignal,
  pipe: PipeEnd | undefined,
  context: ListenerContext,
): void => {
  const id = message.id ?? 'null'
  const filter = message.params?.object('notifications')
  if (filter === undefined) throw new Refusal(-32602, 'subscriptions/listen needs params.notifications')
  const wanted = new Set<ChangedList>(CHANGED_LISTS.filter((list) => filter.value(flagOf(list)) === true))
  const uris = subscribable(filter, caller, context)
  const tasks = followable(filter, caller, context)
  /** Bytes that admission counts for this stream; over HTTP the limits of connections hold. */
  let held = pipe === undefined ? NOTHING : admit(message, caller, context)
  /** Notifications before the acknowledgement; `undefined`: it was sent. */
  let early: (() => void)[] | undefined = []
  const send = (method: string, params: Payload): void => {
    if (early !== undefined) return void early.push(() => send(method, params))
    params.setIn('_meta', META.subscriptionId, id)
    exchange.message(notificationMessage(method, params.parts()))
  }
  const subscriber: Subscriber = {
    updated: (params) => send('notifications/resources/updated', params),
    task: (params) => send('notifications/tasks', params),
  }
  const listener: ChangeListener = {
    changed: (list) => {
      if (wanted.has(list)) send(listChangedMethod(list), Payload.of({}))
    },
    // Deferred, since a stopping gateway calls back within `watchLists`, before `finish` is defined.
    ended: () => queueMicrotask(finish),
  }
  context.core.watchLists(caller, listener)
  const acknowledge = (watched: readonly string[] | undefined, followed: readonly string[] | undefined): void => {
    const queued = early
    early = undefined
    if (signal.aborted || queued === undefined) return
    const notifications = {
      ...Object.fromEntries([...wanted].map((list) => [flagOf(list), true])),
      ...(watched !== undefined && { resourceSubscriptions: watched }),
      ...(followed !== undefined && { taskIds: followed }),
    }
    send('notifications/subscriptions/acknowledged', Payload.of({ notifications }))
    for (const sendNow of queued) sendNow()
  }
  if ((uris?.length ?? 0) + (tasks?.length ?? 0) === 0) acknowledge(uris, tasks)
  else
    void Promise.all([
      uris && watch(uris, subscriber, caller, context),
      // A host polls the tasks that are not accepted ([ext tasks], Task Status Notifications).
      tasks && accepted(tasks, tasks, (id) => context.core.followTask(subscriber, caller, id)),
    ]).then(([watched, followed]) => acknowledge(watched, followed))

  const release = (): void => {
    if (held !== NOTHING) held = context.admission.end(caller.principal, held)
    context.core.unwatchLists(listener)
    context.core.unsubscribe(subscriber)
  }
  /** Ends the stream from our side: the tagged empty result, and on a pipe also the cancellation (B125, B126). */
  const finish = (): void => {
    release()
    // The relay reopens the stream at the next process, so the host must not receive an end.
    if (pipe === 'relay') {
      early = undefined
      return exchange.end()
    }
    // Nothing is watched any more; does nothing after the acknowledgement (B121).
    acknowledge(uris && [], tasks && [])
    const result = Payload.of({
      resultType: 'complete',
      _meta: { [META.serverInfo]: context.endpointInfos.of(caller.scope).info },
    })
    result.setIn('_meta', META.subscriptionId, id)
    exchange.answer(resultMessage(id, result.parts()), 200)
    if (pipe === 'host') exchange.message(notificationMessage('notifications/cancelled', [Buffer.from(`{"requestId":${id}}`)]))
  }
  signal.addEventListener('abort', release, { once: true })
}

/** The member of the filter for a list. */
const flagOf = (list: ChangedList): string => `${list}ListChanged`

/** Counts the stream as a call in flight, and returns its bytes. Throws the `Failure` of the limit that refuses it (B257). */
const admit = ({ bytes }: Envelope, { principal }: Caller, { admission }: ListenerContext): number => {
  const refusal = admission.refuse(principal)
  if (refusal !== undefined) throw refusal
  admission.begin(principal, bytes.length)
  return bytes.length
}

/** How long the acknowledgement waits for the answers of servers. */
const ACKNOWLEDGE_WAIT_MS = 1_000

/** Subscribes. A server that declares subscriptions and does not answer counts: it receives them after it has reconnected. */
const watch = (
  uris: readonly string[],
  subscriber: Subscriber,
  caller: Caller,
  { core }: ListenerContext,
): Promise<readonly string[]> => {
  const declared = uris.filter((uri) => core.maySubscribe(caller, uri) === true)
  return accepted(uris, declared, (uri) => core.subscribe(subscriber, caller, uri))
}

/** The ids that their servers accept. `assumed`: those that count while their server does not answer in time, or cannot be asked. */
const accepted = async (
  ids: readonly string[],
  assumed: readonly string[],
  ask: (id: string) => Promise<boolean>,
): Promise<readonly string[]> => {
  const found = new Set(assumed)
  const requests = ids.map(async (id) => {
    const isAccepted = await ask(id).catch(() => found.has(id))
    if (isAccepted) found.add(id)
    else found.delete(id)
  })
  await within(ACKNOWLEDGE_WAIT_MS, Promise.all(requests))
  return ids.filter((id) => found.has(id))
}

/** Returns those of the named tasks that belong to the caller. Throws if the host does not declare tasks (B172). */
const followable = (filter: Payload, caller: Caller, context: ListenerContext): string[] | undefined => {
  if (filter.isAbsent('taskIds') || !context.core.offersTasks) return undefined
  if (!declaresTasks(caller.capabilities)) throw tasksNotDeclared()
  const asked = filter.value('taskIds')
  if (!Array.isArray(asked) || !asked.every((id) => typeof id === 'string')) throw new Refusal(-32602, 'taskIds must be task ids')
  return context.core.ownTasks(caller, asked)
}

/** Returns the URIs whose server may accept a subscription (B124). */
const subscribable = (filter: Payload, caller: Caller, context: ListenerContext): string[] | undefined => {
  if (filter.isAbsent('resourceSubscriptions')) return undefined
  const asked = filter.value('resourceSubscriptions')
  if (!Array.isArray(asked) || !asked.every((uri) => typeof uri === 'string'))
    throw new Refusal(-32602, 'resourceSubscriptions must be URIs')
  const max = context.core.maxSubscriptions
  if (new Set(asked).size > max) throw reached('limits.subscriptions', max)
  return asked.filter((uri) => context.core.maySubscribe(caller, uri) !== false)
}

/**
 * `subscriptions/listen` of modern hosts: the acknowledgement first, then the requested notifications only, each tagged with the id
 * of the request ([2026-07-28 basic/patterns/subscriptions]; BRIDGING 3.7).
 */
import { tasksNotDeclared } from '../era/host/modern-host.ts'
import { Refusal } from '../rpc/call.ts'
import type { Caller } from '../rpc/call.ts'
import type { CancelSignal } from '../rpc/cancellation.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { notificationMessage, resultMessage } from '../wire/message/message.ts'
import { META } from '../wire/protocol/meta.ts'
import { Payload } from '../wire/message/payload.ts'
import { declaresTasks } from '../wire/protocol/extensions.ts'
import { reached } from './limits/admission.ts'
import type { Exchange } from './response/exchange.ts'
import type { Subscriber } from './core.ts'
import type { ListenerContext } from './listener-context.ts'
import type { ChangedList } from '../wire/protocol/methods.ts'
import { listChangedMethod } from '../wire/protocol/methods.ts'

const FLAGS: Readonly<Record<string, ChangedList>> = {
  toolsListChanged: 'tools',
  promptsListChanged: 'prompts',
  resourcesListChanged: 'resources',
}

/** The peer of a pipe: a host, or an attached `trunkline stdio` that continues after this process. */
export type PipeEnd = 'host' | 'relay'

/** Serves one stream until `signal` fires (the host left) or the gateway ends it. */
export const listen = (
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
  const flags = Object.keys(FLAGS).filter((flag) => filter.value(flag) === true)
  const uris = subscribable(filter, caller, context)
  const tasks = followable(filter, caller, context)
  /** Notifications that wait for the acknowledgement. */
  let early: (() => void)[] | undefined = []
  const say = (method: string, params: Payload): void => {
    if (early !== undefined) return void early.push(() => say(method, params))
    params.setIn('_meta', META.subscriptionId, id)
    exchange.message(notificationMessage(method, params.parts()))
  }
  const wanted = new Set(flags.map((flag) => FLAGS[flag]))
  const subscriber: Subscriber = {
    updated: (params) => say('notifications/resources/updated', params),
    task: (params) => say('notifications/tasks', params),
  }
  const stopChanges = context.core.changes(caller, {
    changed: (list) => {
      if (wanted.has(list)) say(listChangedMethod(list), Payload.of({}))
    },
    // Within `changes` if the gateway stops already.
    ended: () => queueMicrotask(finish),
  })
  for (const id of tasks ?? []) context.core.followTask(subscriber, caller, id)
  const acknowledge = (watched: readonly string[] | undefined): void => {
    const told = early
    early = undefined
    if (signal.aborted) return
    const accepted = {
      ...Object.fromEntries(flags.map((flag) => [flag, true])),
      ...(watched !== undefined && { resourceSubscriptions: watched }),
      ...(tasks !== undefined && { taskIds: tasks }),
    }
    say('notifications/subscriptions/acknowledged', Payload.of({ notifications: accepted }))
    for (const tell of told ?? []) tell()
  }
  if (uris === undefined || uris.length === 0) acknowledge(uris)
  else void watch(uris, subscriber, caller, context).then(acknowledge)

  const release = (): void => {
    stopChanges()
    context.core.unsubscribe(subscriber)
  }
  /** The gateway ends the stream: the tagged empty result, and on a pipe the cancellation beside it (B125, B126). */
  const finish = (): void => {
    release()
    // The relay opens it again at the next process, so its host must see no end.
    if (pipe === 'relay') return exchange.end()
    const result = Payload.of({ resultType: 'complete', _meta: { [META.serverInfo]: context.identities.of(caller.scope).info } })
    result.setIn('_meta', META.subscriptionId, id)
    exchange.answer(resultMessage(id, result.parts()), 200)
    if (pipe === 'host') exchange.message(notificationMessage('notifications/cancelled', [Buffer.from(`{"requestId":${id}}`)]))
  }
  signal.addEventListener('abort', release, { once: true })
}

/** How long the acknowledgement waits for servers. */
const ACKNOWLEDGE_WAIT_MS = 1_000

/**
 * Subscribes and returns the watched URIs. A URI whose server declares subscriptions but cannot be asked now, or does not answer in
 * time, counts as watched: the server is asked when it is back.
 */
const watch = async (
  uris: readonly string[],
  subscriber: Subscriber,
  caller: Caller,
  context: ListenerContext,
): Promise<readonly string[]> => {
  const watched = new Set(uris.filter((uri) => context.core.maySubscribe(caller, uri) === true))
  const asked = uris.map(async (uri) => {
    const isTaken = await context.core.subscribe(subscriber, caller, uri).catch(() => watched.has(uri))
    if (isTaken) watched.add(uri)
    else watched.delete(uri)
  })
  const timer = Promise.withResolvers<void>()
  const timeout = setTimeout(timer.resolve, ACKNOWLEDGE_WAIT_MS)
  await Promise.race([Promise.all(asked), timer.promise])
  clearTimeout(timeout)
  return uris.filter((uri) => watched.has(uri))
}

/** Only the caller's own tasks are acknowledged; naming tasks requires that the host declares them (B172). */
const followable = (filter: Payload, caller: Caller, context: ListenerContext): string[] | undefined => {
  const asked = filter.value('taskIds')
  if (asked === undefined || !context.core.offersTasks) return undefined
  if (!declaresTasks(caller.capabilities)) throw tasksNotDeclared()
  if (!Array.isArray(asked) || !asked.every((id) => typeof id === 'string')) throw new Refusal(-32602, 'taskIds must be task ids')
  return context.core.ownTasks(caller, asked)
}

/** B124: only URIs whose owner offers subscriptions are acknowledged; where it declares none, it is asked. */
const subscribable = (filter: Payload, caller: Caller, context: ListenerContext): string[] | undefined => {
  const asked = filter.value('resourceSubscriptions')
  if (asked === undefined) return undefined
  if (!Array.isArray(asked) || !asked.every((uri) => typeof uri === 'string'))
    throw new Refusal(-32602, 'resourceSubscriptions must be URIs')
  const max = context.core.maxSubscriptions
  if (new Set(asked).size > max) throw reached('limits.subscriptions', max)
  return asked.filter((uri) => context.core.maySubscribe(caller, uri) !== false)
}

/**
 * `subscriptions/listen` of modern hosts: sends the acknowledgement, then the requested notifications, each tagged with the id of the
 * request ([2026-07-28 basic/patterns/subscriptions]; BRIDGING 3.7).
 */
import { tasksNotDeclared } from '../era/host/modern-host.ts'
import { Refusal } from '../rpc/call.ts'
import type { Caller, ChangeListener } from '../rpc/call.ts'
import { within } from '../time/within.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { notificationMessage, resultMessage } from '../wire/message/message.ts'
import { META } from '../wire/protocol/meta.ts'
import { Payload } from '../wire/message/payload.ts'
import { declaresTasks } from '../wire/protocol/extensions.ts'
import { NOTHING, reached } from './limits/admission.ts'
import type { HostRequest } from './host-request.ts'
import type { Subscriber } from './core.ts'
import type { ListenerContext } from './listener-context.ts'
import type { ChangedList } from '../wire/protocol/methods.ts'
import { CHANGED_LISTS, listChangedMethod } from '../wire/protocol/methods.ts'

/** The peer of a pipe: a host, or an attached `trunkline stdio`, which outlives this process. */
export type PipeEnd = 'host' | 'relay'

/** Serves one stream until the host disconnects or the gateway ends it. Throws for a request that is refused. */
export const serveSubscriptions = (request: HostRequest, caller: Caller, pipe: PipeEnd | undefined): void =>
  new SubscriptionStream(request, caller, pipe).open()

class SubscriptionStream implements Subscriber, ChangeListener {
  readonly #request: HostRequest
  readonly #caller: Caller
  readonly #pipe: PipeEnd | undefined
  readonly #lists: ReadonlySet<ChangedList>
  readonly #uris: readonly string[] | undefined
  readonly #tasks: readonly string[] | undefined
  /** Bytes that admission counts for this stream; over HTTP the limits of connections hold. */
  #held = NOTHING
  /** Notifications before the acknowledgement; `undefined`: it was sent. */
  #early: (() => void)[] | undefined = []

  constructor(request: HostRequest, caller: Caller, pipe: PipeEnd | undefined) {
    const { message, context } = request
    const filter = message.params?.object('notifications')
    if (filter === undefined) throw new Refusal(-32602, 'subscriptions/listen needs params.notifications')
    this.#request = request
    this.#caller = caller
    this.#pipe = pipe
    this.#lists = new Set(CHANGED_LISTS.filter((list) => filter.value(flagOf(list)) === true))
    this.#uris = subscribable(filter, caller, context)
    this.#tasks = followable(filter, caller, context)
  }

  open(): void {
    const { message, signal, context } = this.#request
    const [uris, tasks, caller] = [this.#uris, this.#tasks, this.#caller]
    if (this.#pipe !== undefined) this.#held = admit(message, caller, context)
    context.core.watchLists(caller, this)
    if ((uris?.length ?? 0) + (tasks?.length ?? 0) === 0) this.#acknowledge(uris, tasks)
    else
      void Promise.all([
        uris && watch(uris, this, caller, context),
        // A host polls the tasks that are not accepted ([ext tasks], Task Status Notifications).
        tasks && accepted(tasks, tasks, (id) => context.core.followTask(this, caller, id)),
      ]).then(([watched, followed]) => this.#acknowledge(watched, followed))
    signal.addEventListener('abort', () => this.#release(), { once: true })
  }

  updated(params: Payload): void {
    this.#send('notifications/resources/updated', params)
  }

  task(params: Payload): void {
    this.#send('notifications/tasks', params)
  }

  changed(list: ChangedList): void {
    if (this.#lists.has(list)) this.#send(listChangedMethod(list), Payload.of({}))
  }

  ended(): void {
    // Deferred, since a stopping gateway calls back within `watchLists`.
    queueMicrotask(() => this.#finish())
  }

  #send(method: string, params: Payload): void {
    const { id, exchange } = this.#request
    if (this.#early !== undefined) return void this.#early.push(() => this.#send(method, params))
    params.setIn('_meta', META.subscriptionId, id)
    exchange.message(notificationMessage(method, params.parts()))
  }

  #acknowledge(watched: readonly string[] | undefined, followed: readonly string[] | undefined): void {
    const early = this.#early
    this.#early = undefined
    if (this.#request.signal.aborted || early === undefined) return
    const notifications = {
      ...Object.fromEntries([...this.#lists].map((list) => [flagOf(list), true])),
      ...(watched !== undefined && { resourceSubscriptions: watched }),
      ...(followed !== undefined && { taskIds: followed }),
    }
    this.#send('notifications/subscriptions/acknowledged', Payload.of({ notifications }))
    for (const sendNow of early) sendNow()
  }

  #release(): void {
    const { admission, core } = this.#request.context
    if (this.#held !== NOTHING) this.#held = admission.end(this.#caller.principal, this.#held)
    core.unwatchLists(this)
    core.unsubscribe(this)
  }

  /** Ends the stream from our side: the tagged empty result, and on a pipe also the cancellation (B125, B126). */
  #finish(): void {
    const { id, exchange, context } = this.#request
    this.#release()
    // The relay reopens the stream at the next process, so the host must not receive an end.
    if (this.#pipe === 'relay') {
      this.#early = undefined
      return exchange.end()
    }
    // Nothing is watched any more; does nothing after the acknowledgement (B121).
    this.#acknowledge(this.#uris && [], this.#tasks && [])
    const result = Payload.of({
      resultType: 'complete',
      _meta: { [META.serverInfo]: context.endpointInfos.of(this.#caller.scope).info },
    })
    result.setIn('_meta', META.subscriptionId, id)
    exchange.answer(resultMessage(id, result.parts()), 200)
    if (this.#pipe === 'host')
      exchange.message(notificationMessage('notifications/cancelled', [Buffer.from(`{"requestId":${id}}`)]))
  }
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

/**
 * The open `subscriptions/listen` streams at one modern server: one for lists, others for watched resources and tasks. A broken stream
 * is opened again, and everything it covers is reported as changed once (BRIDGING 3.7).
 */
import type { Connection } from '../../rpc/connection.ts'
import { backoffMs } from '../../time/backoff.ts'
import { jsonObject } from '../../values/json-object.ts'
import { numberedId } from '../../wire/message/envelope.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { requestMessage } from '../../wire/message/message.ts'
import { META } from '../../wire/protocol/meta.ts'
import type { Payload } from '../../wire/message/payload.ts'
import { resultOf } from './result-of.ts'
import { RETRY, Resubscriber, STEADY_MS } from './resubscriber.ts'
import type { Filter, ListenStream } from './resubscriber.ts'

export interface ListenStreamsEvents {
  /** Params of a `listen` request, and the headers that mirror them. */
  params(filter: Filter): Payload
  headers(params: Payload): Readonly<Record<string, string>>
  /** Lists, a resource or a task may have changed while no stream was open. */
  missedLists(): void
  missedResource(uri: string): void
  missedTask(id: string): void
  /** A stream could not be opened, or broke. */
  refused(error: unknown): void
}

/** What an acknowledgement without a filter agrees to. */
const NOTHING: Filter = {}

interface Opened {
  readonly stream: ListenStream
  readonly acknowledged: (filter: Filter | undefined) => void
}

export class ListenStreams {
  readonly #connection: Connection
  readonly #events: ListenStreamsEvents
  readonly #streams = new Map<string, Opened>()
  /** Resources and tasks that hosts watch now. */
  readonly resources: Resubscriber
  readonly tasks: Resubscriber
  /** List changes that the server acknowledged on the open stream. */
  accepted: Filter = {}
  #isClosed = false

  constructor(connection: Connection, events: ListenStreamsEvents) {
    this.#connection = connection
    this.#events = events
    const open = (filter: Filter): ListenStream => this.#open(filter)
    this.resources = new Resubscriber('resourceSubscriptions', open, (uri) => events.missedResource(uri))
    this.tasks = new Resubscriber('taskIds', open, (id) => events.missedTask(id))
    void connection.channel.closed.then(() => this.close())
  }

  /** Keeps one stream for list changes open until the link is closed. */
  lists(filter: Filter): void {
    if (Object.keys(filter).length > 0) void this.#hold(filter)
  }

  /** An acknowledgement without `notifications`, or with `null`, accepts nothing. */
  acknowledged(params: Payload | undefined): void {
    this.#streams.get(subscriptionOf(params) ?? '')?.acknowledged(jsonObject(params?.value('notifications')) ?? NOTHING)
  }

  /** Ends the stream that the server cancels by a notification ([2026-07-28 basic/patterns/cancellation]). */
  ended(params: Payload | undefined): void {
    this.#streams.get(numberedId(params?.raw('requestId')?.toString() ?? ''))?.stream.close()
  }

  close(): void {
    this.#isClosed = true
    this.resources.close()
    this.tasks.close()
    for (const { stream } of this.#streams.values()) stream.close()
  }

  async #hold(filter: Filter): Promise<void> {
    let failures = 0
    for (let openings = 0; !this.#isClosed; openings++) {
      const { acknowledged, ended } = this.#open(filter)
      const accepted = await acknowledged
      const sinceMs = performance.now()
      this.accepted = accepted ?? {}
      if (accepted !== undefined && openings > 0) this.#events.missedLists()
      await ended
      this.accepted = {}
      if (this.#isClosed) return
      if (performance.now() - sinceMs >= STEADY_MS) failures = 0
      await new Promise((resolve) => setTimeout(resolve, backoffMs(failures++, RETRY)).unref())
    }
  }

  #open(filter: Filter): ListenStream {
    const abort = new AbortController()
    const { promise: acknowledged, resolve } = Promise.withResolvers<Filter | undefined>()
    const params = this.#events.params(filter)
    let key = ''
    const close = (): void => abort.abort()
    let refusal: unknown
    const ended = this.#connection
      .request({
        build: (id) => {
          key = String(id)
          return {
            id,
            parts: requestMessage(id, 'subscriptions/listen', params.parts()),
            headers: this.#events.headers(params),
          }
        },
        read: (message) => {
          if (message.error !== undefined) refusal = refusalIn(message)
        },
        idleMs: Infinity,
        totalMs: Infinity,
        signal: abort.signal,
        cancel: (id) => this.#cancel(id),
      })
      .catch((error: unknown) => {
        if (!this.#isClosed) this.#events.refused(error)
      })
      .finally(() => {
        this.#streams.delete(key)
        resolve(undefined)
      })
    const stream: ListenStream = { key, acknowledged, ended, refusal: () => refusal, close }
    this.#streams.set(key, { stream, acknowledged: resolve })
    return stream
  }

  #cancel(id: number): void {
    if (this.#connection.channel.kind !== 'http')
      this.#connection.notify('notifications/cancelled', [Buffer.from(JSON.stringify({ requestId: id }))])
  }
}

const refusalIn = (message: Envelope): unknown => {
  try {
    return resultOf(message)
  } catch (error) {
    return error
  }
}

/** The params of an update without the id of our `listen` request. */
export const withoutSubscription = (params: Payload): Payload => {
  const meta = params.object('_meta')
  if (meta?.has(META.subscriptionId) !== true) return params
  if (meta.members.length === 1) params.delete('_meta')
  else meta.delete(META.subscriptionId)
  return params.settled()
}

/** The subscription id in a message of the server: JSON text of the id of our `listen` request. */
export const subscriptionOf = (params: Payload | undefined): string | undefined => {
  const id = params?.object('_meta')?.raw(META.subscriptionId)?.toString()
  return id && numberedId(id)
}

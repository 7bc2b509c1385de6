/**
 * The `subscriptions/listen` streams we hold at one modern server: one for the lists, one each for the resources and the tasks
 * that are watched now. A filter cannot change on an open stream, so a new set opens a new stream, and the old one ends once the
 * new one is acknowledged (make before break; BRIDGING 3.7).
 */
import type { Connection } from '../rpc/connection.ts'
import { requestMessage } from '../wire/message.ts'
import { META } from '../wire/meta.ts'
import type { Payload } from '../wire/payload.ts'

export type Filter = Readonly<Record<string, unknown>>

interface Wording {
  params(filter: Filter): Payload
  headers(params: Payload): Record<string, string>
}

interface Stream {
  readonly abort: AbortController
  readonly acknowledged: (filter: Filter | undefined) => void
}

const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000

export class Listening {
  readonly #connection: Connection
  readonly #wording: Wording
  readonly #streams = new Map<string, Stream>()
  /** The sets that hosts watch now. */
  readonly resources: Watched
  readonly tasks: Watched
  #closed = false

  constructor(connection: Connection, wording: Wording) {
    this.#connection = connection
    this.#wording = wording
    const open = (filter: Filter, abort: AbortController) => this.#open(filter, abort).acknowledged
    this.resources = new Watched('resourceSubscriptions', open)
    this.tasks = new Watched('taskIds', open)
  }

  /** Holds one stream for list changes, reopened for as long as the link lives. */
  lists(filter: Filter): void {
    if (Object.keys(filter).length > 0) void this.#hold(filter)
  }

  acknowledged(params: Payload | undefined): void {
    const id = params?.object('_meta')?.raw(META.subscriptionId)?.toString()
    const stream = id === undefined ? undefined : this.#streams.get(id)
    stream?.acknowledged(params?.value('notifications') as Filter | undefined)
  }

  /** The server ends one of our streams by a notification ([2026-07-28 basic/patterns/cancellation]). */
  ended(params: Payload | undefined): void {
    const id = params?.raw('requestId')?.toString()
    if (id !== undefined) this.#streams.get(id)?.abort.abort()
  }

  close(): void {
    this.#closed = true
    for (const stream of this.#streams.values()) stream.abort.abort()
  }

  async #hold(filter: Filter): Promise<void> {
    for (let waitMs = FIRST_RETRY_MS; !this.#closed; waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
      const { acknowledged, ended } = this.#open(filter, new AbortController())
      if ((await acknowledged) !== undefined) waitMs = FIRST_RETRY_MS
      const isGone = await Promise.race([ended, this.#connection.channel.closed.then(() => true)])
      if (isGone) return
      const jitteredMs = waitMs * (0.5 + Math.random() / 2)
      await new Promise((resolve) => setTimeout(resolve, jitteredMs).unref())
    }
  }

  /** `ended` settles with true when the connection itself is gone. */
  #open(filter: Filter, abort: AbortController): { acknowledged: Promise<Filter | undefined>; ended: Promise<boolean> } {
    let acknowledge: (filter: Filter | undefined) => void = () => undefined
    const acknowledged = new Promise<Filter | undefined>((resolve) => (acknowledge = resolve))
    const params = this.#wording.params(filter)
    let key = ''
    const ended = this.#connection
      .request(
        (id) => {
          key = String(id)
          this.#streams.set(key, { abort, acknowledged: acknowledge })
          return { id, parts: requestMessage(id, 'subscriptions/listen', params.parts()), headers: this.#wording.headers(params) }
        },
        { idleMs: Infinity, totalMs: Infinity, signal: abort.signal, cancel: (id) => this.#cancel(id) },
      )
      .then(
        () => false,
        () => false,
      )
      .finally(() => {
        this.#streams.delete(key)
        acknowledge(undefined)
      })
    return { acknowledged, ended }
  }

  #cancel(id: number): void {
    if (this.#connection.channel.kind !== 'http')
      this.#connection.notify('notifications/cancelled', [Buffer.from(JSON.stringify({ requestId: id }))])
  }
}

/** One member of the filter that is a set, and the stream that holds it open. */
class Watched {
  readonly #field: 'resourceSubscriptions' | 'taskIds'
  readonly #open: (filter: Filter, abort: AbortController) => Promise<Filter | undefined>
  readonly #ids = new Set<string>()
  #abort: AbortController | undefined
  /** The change that is under way, and the one that waits for its end. */
  #current: Promise<Filter | undefined> = Promise.resolve(undefined)
  #next: Promise<Filter | undefined> | undefined

  constructor(
    field: 'resourceSubscriptions' | 'taskIds',
    open: (filter: Filter, abort: AbortController) => Promise<Filter | undefined>,
  ) {
    this.#field = field
    this.#open = open
  }

  /** Adds one URI or id; false if the server's acknowledgement leaves it out. */
  async add(id: string): Promise<boolean> {
    this.#ids.add(id)
    const accepted = (await this.#replace())?.[this.#field]
    const isAccepted = Array.isArray(accepted) && accepted.includes(id)
    if (!isAccepted) this.#ids.delete(id)
    return isAccepted
  }

  async remove(id: string): Promise<void> {
    if (this.#ids.delete(id)) await this.#replace()
  }

  /** One stream is opened at a time, else the later one could end the earlier before that is acknowledged; ids share the next. */
  #replace(): Promise<Filter | undefined> {
    return (this.#next ??= this.#current.then(() => {
      this.#current = this.#swap()
      this.#next = undefined
      return this.#current
    }))
  }

  async #swap(): Promise<Filter | undefined> {
    const old = this.#abort
    const abort = (this.#abort = new AbortController())
    const accepted = this.#ids.size === 0 ? undefined : await this.#open({ [this.#field]: [...this.#ids] }, abort)
    old?.abort()
    return accepted
  }
}

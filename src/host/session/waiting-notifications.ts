/** Notifications for a host that has no stream for them now: list changes, updated resources and completed elicitations. */
import { parseJson } from '../../values/json-object.ts'
import { notificationMessage } from '../../wire/message/message.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { JsonObject, Parts } from '../../wire/message/payload.ts'
import { LIST_CHANGED } from '../../wire/protocol/methods.ts'
import type { Outlet } from './outlet.ts'

export const COMPLETED = 'notifications/elicitation/complete'
export const UPDATED = 'notifications/resources/updated'
/** Updates, of any resources that servers report, and completed elicitations beside them. */
const MAX_UPDATED = 256
const MAX_WAITING = MAX_UPDATED + 32

export class WaitingNotifications {
  /** By what they tell, which they tell once. */
  readonly #waiting = new Map<string, Parts>()
  #completed = 0

  /** Keeps a notification; those of other kinds belong to a request, and are dropped. */
  keep(method: string, params: JsonObject | undefined, parts: Parts): void {
    if (LIST_CHANGED.has(method)) this.#waiting.set(method, parts)
    else if (method === UPDATED && params instanceof Payload) this.#keepUpdated(parseJson(params.final('uri')?.toString() ?? ''))
    else if (method === COMPLETED && this.#waiting.size < MAX_WAITING)
      this.#waiting.set(`${COMPLETED} ${this.#completed++}`, parts)
  }

  #keepUpdated(uri: unknown): void {
    if (typeof uri === 'string' && this.#waiting.size < MAX_UPDATED)
      this.#waiting.set(updateOf(uri), notificationMessage(UPDATED, Payload.of({ uri }).parts()))
  }

  /** The host has unsubscribed from a resource. */
  unsubscribed(uri: string): void {
    this.#waiting.delete(updateOf(uri))
  }

  sendTo(outlet: Outlet): void {
    for (const parts of this.#waiting.values()) outlet.send(parts)
  }
}

const updateOf = (uri: string): string => `${UPDATED} ${uri}`

/** Events on links that concern more than their callers. `downstream.ts` dispatches them to parts that are built later. */
import type { Payload } from '../wire/message/payload.ts'
import type { Era } from '../wire/protocol/revisions.ts'
import type { LinkOwner } from './link-owner.ts'
import type { ChangedList } from '../wire/protocol/methods.ts'

/** `owner`: of the link of the event; `undefined`: the main link, or another link that serves no host. */
export type LinkReport =
  | { readonly type: 'opened'; readonly owner: LinkOwner }
  | { readonly type: 'closed'; readonly owner: LinkOwner }
  /** A legacy link was opened to a server whose main link is modern. */
  | { readonly type: 'legacy-opened' }
  /** A server whose main link is modern refuses `initialize`. */
  | { readonly type: 'legacy-refused' }
  | { readonly type: 'list-announced'; readonly list: ChangedList; readonly owner: LinkOwner | undefined }
  /** A resource changed; the URI is the server's own. */
  | { readonly type: 'updated'; readonly uri: string; readonly params: Payload; readonly owner: LinkOwner | undefined }
  | { readonly type: 'task-ended'; readonly id: string; readonly owner: LinkOwner | undefined }
  /** A request was refused, perhaps because the server has changed its era. `era`: era of the link. */
  | { readonly type: 'refused'; readonly error: unknown; readonly era: Era }

export class LinkReports {
  #receive: (report: LinkReport) => void = () => undefined

  /** Sets the receiver, once all parts are built. Earlier reports are dropped; no link is open then. */
  deliverTo(receive: (report: LinkReport) => void): void {
    this.#receive = receive
  }

  send(report: LinkReport): void {
    this.#receive(report)
  }
}

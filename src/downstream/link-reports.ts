/**
 * What happens on the links of one server and concerns more than their callers. The links report here; the parts that react are built
 * later, and receive the reports from one place (`downstream.ts`).
 */
import type { Payload } from '../wire/message/payload.ts'
import type { Era } from '../wire/protocol/revisions.ts'
import type { LinkOwner } from './link-owner.ts'
import type { ChangedList } from '../wire/protocol/methods.ts'

/** `owner`: of the link it happened on; `undefined`: the main link, or another that serves no host. */
export type LinkReport =
  | { readonly type: 'opened'; readonly owner: LinkOwner }
  | { readonly type: 'closed'; readonly owner: LinkOwner }
  /** A link in the legacy era is open to a server whose main link is modern. */
  | { readonly type: 'legacy-opened' }
  /** A server whose main link is modern does not take `initialize`, or not any more. */
  | { readonly type: 'legacy-refused' }
  /** The server says that a list changed. */
  | { readonly type: 'list-announced'; readonly list: ChangedList; readonly owner: LinkOwner | undefined }
  /** A resource changed; the URI is the server's own. */
  | { readonly type: 'updated'; readonly uri: string; readonly params: Payload; readonly owner: LinkOwner | undefined }
  | { readonly type: 'task-ended'; readonly id: string; readonly owner: LinkOwner | undefined }
  /** A request was refused, perhaps because the server has changed its era; `era`: of the link. */
  | { readonly type: 'refused'; readonly error: unknown; readonly era: Era }

export class LinkReports {
  #receive: (report: LinkReport) => void = () => undefined

  /** Called once, when all that react exist. Reports before that are dropped: no link is open yet. */
  deliverTo(receive: (report: LinkReport) => void): void {
    this.#receive = receive
  }

  send(report: LinkReport): void {
    this.#receive(report)
  }
}

import type { Flow } from '../../rpc/call.ts'
import type { Parts } from '../../wire/message/payload.ts'

/** Receives messages for the host. */
export interface Outlet {
  readonly flow?: Flow | undefined
  send(parts: Parts): void
}

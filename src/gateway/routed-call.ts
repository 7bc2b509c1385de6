/** A call whose server is known. */
import type { Route } from '../catalog/view/routes.ts'
import type { View } from '../catalog/view/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import type { Call, Resume } from '../rpc/call.ts'

export interface RoutedCall {
  /** The host's call, with exposed names. */
  readonly call: Call
  /** The same call as the host sent it, if the policy has replaced its arguments: a retry has those of the host. */
  readonly received?: Call
  readonly route: Route
  readonly downstream: Downstream
  /** The caller's view in which the route was found. */
  readonly view: View
  /** The opened state of a retry; `undefined`: a first attempt. */
  readonly resume: Resume | undefined
}

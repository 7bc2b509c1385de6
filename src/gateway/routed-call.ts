/** A call whose owner is known: what the way to its server and back has in common. */
import type { Route } from '../catalog/view/routes.ts'
import type { View } from '../catalog/view/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import type { Call, Resume } from '../rpc/call.ts'

export interface RoutedCall {
  /** As the host sent it, under exposed names. */
  readonly call: Call
  readonly route: Route
  readonly downstream: Downstream
  /** What the caller saw of the catalog when the route was found. */
  readonly view: View
  /** What a retry brought back, with its state opened; `undefined`: a first attempt. */
  readonly resume: Resume | undefined
}

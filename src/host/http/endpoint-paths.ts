/** Which endpoint a path names: that of everything, of one toolset, or of one server. */
import { serverKeyAt } from '../../auth/inbound/server-endpoints.ts'
import type { EndpointKind } from '../../auth/inbound/server-endpoints.ts'
import type { EndpointPath } from '../../rpc/call.ts'

const NAMELESS: EndpointPath = {}

/** `<base>`, `<base>/<toolset>` or `/servers/<key>/<kind>`; `undefined`: the path names no endpoint of this kind. */
export const endpointAt = (kind: EndpointKind, base: string, path: string): EndpointPath | undefined => {
  if (path === base) return NAMELESS
  if (path.startsWith(base) && path[base.length] === '/') return { toolset: path.slice(base.length + 1) }
  const server = serverKeyAt(path, kind)
  return server === undefined ? undefined : { server }
}

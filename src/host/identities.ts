/**
 * The gateway's `serverInfo` at an endpoint. Clients name tools after it (VS Code cuts it to some 13 characters), so each toolset has a
 * name of its own that begins with the toolset (BRIDGING 3.21, 3.22).
 */
import type { Identity } from '../era/server/link.ts'
import type { Scope } from '../rpc/call.ts'

/** `serverInfo` of an endpoint. */
export interface EndpointIdentity {
  readonly info: Identity
  /** The same as JSON text: it is written into every result of a modern host. */
  readonly json: Uint8Array
}

export class Identities {
  readonly #merged: EndpointIdentity
  /** By server key or name of a toolset; as many as are configured. */
  readonly #named = new Map<string, EndpointIdentity>()

  constructor(merged: Identity) {
    this.#merged = withJson(merged)
  }

  /** At a bridge it is used for a server without `serverInfo`. */
  of({ server, toolset }: Scope): EndpointIdentity {
    const name = server ?? toolset
    if (name === undefined) return this.#merged
    let named = this.#named.get(name)
    if (named === undefined) {
      const { info } = this.#merged
      named = withJson({ ...info, name: `${name}-${info.name}`, title: `${info.title}: ${name}` })
      this.#named.set(name, named)
    }
    return named
  }
}

const withJson = (info: Identity): EndpointIdentity => ({ info, json: Buffer.from(JSON.stringify(info)) })

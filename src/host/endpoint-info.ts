/**
 * The gateway's `serverInfo` at each endpoint. Clients name tools after it (VS Code cuts it to about 13 characters), so the name at a
 * toolset begins with the toolset (BRIDGING 3.21, 3.22).
 */
import type { Identity } from '../era/server/link.ts'
import type { Scope } from '../rpc/call.ts'

export interface EndpointInfo {
  readonly info: Identity
  /** `info` as JSON text, for the results of modern hosts. */
  readonly json: Uint8Array
}

export class EndpointInfos {
  readonly #merged: EndpointInfo
  /** By server key or toolset name. */
  readonly #named = new Map<string, EndpointInfo>()

  constructor(merged: Identity) {
    this.#merged = withJson(merged)
  }

  /** Returns the `serverInfo` of an endpoint. A bridge uses it where its server sends none. */
  of({ server, toolset }: Scope): EndpointInfo {
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

const withJson = (info: Identity): EndpointInfo => ({ info, json: Buffer.from(JSON.stringify(info)) })

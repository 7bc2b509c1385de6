/** Headers of requests to a modern server over HTTP that mirror the body (B219). Equal method and name reuse the last record. */
import type { Outgoing } from '../../transport/channel/channel.ts'
import { encodeHeaderValue } from '../../wire/headers/header-value.ts'

export type MirrorRecord = NonNullable<Outgoing['headers']>

export class MirrorHeaders {
  #latest: { readonly method: string; readonly name: string | undefined; readonly headers: MirrorRecord } | undefined

  /** `name`: the target of the method, if the method mirrors it. */
  of(method: string, name: string | undefined): MirrorRecord {
    const latest = this.#latest
    if (latest !== undefined && latest.method === method && latest.name === name) return latest.headers
    const headers: Record<string, string> = { 'mcp-method': method }
    if (name !== undefined) headers['mcp-name'] = encodeHeaderValue(name)
    this.#latest = { method, name, headers }
    return headers
  }
}

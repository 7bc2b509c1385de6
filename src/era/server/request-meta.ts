/** `_meta` of the requests to one server, cached by the caller's capabilities while its inputs stay the same. */
import type { Call, Capabilities, Scope } from '../../rpc/call.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'
import type { JsonObject } from '../../wire/message/payload.ts'
import { OPEN_BRACE } from '../../wire/json/tokens.ts'

interface Made {
  readonly from: Buffer | undefined
  readonly logLevel: LogLevel | undefined
  readonly scope: Scope
  readonly text: Buffer
}

export class RequestMeta {
  readonly #edit: (meta: JsonObject, call: Call) => void
  readonly #made = new WeakMap<Capabilities, Made>()

  /** `edit` converts the host's `_meta` for the server; it may depend only on capabilities, scope and log level of the call. */
  constructor(edit: (meta: JsonObject, call: Call) => void) {
    this.#edit = edit
  }

  /** Writes the `_meta` of a call, sent under `id`, into its params. */
  write(call: Call, id: number): void {
    const { params, caller, logLevel, progressToken, trace, withheld } = call
    const raw = params.raw('_meta')
    const from = raw?.[0] === OPEN_BRACE ? raw : undefined
    if (progressToken !== undefined || trace !== undefined || withheld !== undefined)
      return params.set('_meta', this.#make(from, call, id))
    const known = this.#made.get(caller.capabilities)
    if (known !== undefined && known.logLevel === logLevel && known.scope === caller.scope && isSame(known.from, from))
      return params.set('_meta', known.text)
    // Made from a copy, since it may be a part of it: the memory of the host's request is used again.
    const own = from && Buffer.from(from)
    const text = this.#make(own, call, id)
    this.#made.set(caller.capabilities, { from: own, logLevel, scope: caller.scope, text })
    params.set('_meta', text)
  }

  #make(from: Buffer | undefined, call: Call, id: number): Buffer {
    const meta = from === undefined ? new Draft() : Payload.at(from)
    this.#edit(meta, call)
    if (call.progressToken === undefined) meta.delete('progressToken')
    else meta.set('progressToken', String(id))
    for (const key of call.withheld ?? []) meta.delete(key)
    call.trace?.write(meta, id)
    return join(meta.parts())
  }
}

const isSame = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined ? a === b : a.equals(b)

/** A host's call as a request to a server: message, response, progress. One object in place of several closures per call. */
import type { Call, Outcome } from '../../rpc/call.ts'
import type { CancelRequest, Request } from '../../rpc/connection.ts'
import type { Hop } from '../../rpc/record.ts'
import type { Outgoing } from '../../transport/channel/channel.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { LinkTimeouts } from './link.ts'
import { resultOf } from './result-of.ts'

/** Operations of a link on its calls, for both eras. */
export interface Carrier extends Hop {
  /** Builds the message. */
  write(call: Call, id: number): Outgoing
  /** Converts the server's result to an outcome; throws `Failure` for an invalid result. */
  read(call: Call, result: Payload): Outcome
  /** Sends the cancellation to the server, if the transport needs a message. */
  readonly cancel: CancelRequest
}

export class PendingCall implements Request<Outcome> {
  readonly call: Call
  readonly idleMs: number
  readonly totalMs: number
  /** `timeout` of a tool sets both times. */
  readonly limit: string | undefined
  readonly #carrier: Carrier

  /** `idleMs`, `totalMs`: those of the server. A tool with a time of its own may be silent for as long (F-02). */
  constructor(call: Call, carrier: Carrier, { idleMs, totalMs }: Pick<LinkTimeouts, 'idleMs' | 'totalMs'>) {
    this.call = call
    this.totalMs = call.totalMs ?? totalMs
    this.idleMs = (call.totalMs ?? 0) > idleMs ? this.totalMs : idleMs
    this.limit = call.totalMs === undefined ? undefined : 'tools.timeout'
    this.#carrier = carrier
  }

  get signal(): Call['signal'] {
    return this.call.signal
  }
  get cancel(): Carrier['cancel'] {
    return this.#carrier.cancel
  }

  build(id: number): Outgoing {
    const outgoing = this.#carrier.write(this.call, id)
    this.call.record?.sent?.(outgoing.parts, id, this.#carrier)
    return outgoing
  }

  read(message: Envelope): Outcome {
    this.call.record?.received?.(message)
    return this.#carrier.read(this.call, resultOf(message))
  }

  progress({ method, params }: Envelope): void {
    this.call.record?.progressed?.()
    if (params !== undefined) this.call.notify(method, params)
  }
}

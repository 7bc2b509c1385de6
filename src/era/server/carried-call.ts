/**
 * A host's call on its way to a server and back: what is sent under which id, what its answer comes to, and who hears of its
 * progress meanwhile. One object per call, where a closure for each of these would be made for every call.
 */
import type { Call, Outcome } from '../../rpc/call.ts'
import type { CancelRequest, Request } from '../../rpc/connection.ts'
import type { Hop } from '../../rpc/record.ts'
import type { Outgoing } from '../../transport/channel/channel.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import type { Payload } from '../../wire/message/payload.ts'
import { resultOf } from './result-of.ts'

/** What the link of either era knows of calls. */
export interface Carrier extends Hop {
  /** The message as it goes out. */
  write(call: Call, id: number): Outgoing
  /** What the server's result comes to; throws `Failure` where that makes no sense. */
  read(call: Call, result: Payload): Outcome
  /** Tells the server that a call is given up, where that takes a message. */
  readonly cancel: CancelRequest
}

export class CarriedCall implements Request<Outcome> {
  readonly call: Call
  readonly idleMs: number
  readonly totalMs: number
  readonly #carrier: Carrier

  constructor(call: Call, carrier: Carrier, idleMs: number, totalMs: number) {
    this.call = call
    this.idleMs = idleMs
    this.totalMs = totalMs
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

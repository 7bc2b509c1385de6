/**
 * Detects circles of gateways (T-35). The handshake answer of a gateway lists the gateways behind it, itself first. A gateway that
 * finds its own name there is part of a circle. A circle may form after the handshake, so the names are requested again before lists
 * are read. A limit on the number of gateways passed ends a circle whose gateways do not list names.
 */
import { Failure } from '../wire/message/failure.ts'
import { META } from '../wire/protocol/meta.ts'
import { Payload } from '../wire/message/payload.ts'
import type { JsonObject } from '../wire/message/payload.ts'

/** Maximum number of gateways on the way of a request. */
const MAX_HOPS = 3
/** Further names in an answer are ignored. */
const MAX_GATEWAYS = 1_000
const MAX_NAME_LENGTH = 64

/** The position of this process in a chain of gateways. */
export interface Position {
  /** Random name of this process. */
  readonly instance: string
  /** Known number of gateways between the host and this process. */
  readonly hops: number
}

/** The gateways behind a server, nearest first, as its answer lists them; empty for a server that is not a gateway. */
export const gatewaysIn = (result: Payload): readonly string[] => {
  const names = result.object('_meta')?.value(META.gateways)
  if (!Array.isArray(names)) return []
  return names.filter((name) => typeof name === 'string' && name.length <= MAX_NAME_LENGTH).slice(0, MAX_GATEWAYS)
}

/** Throws `loop` if `gateways` contain this process. */
export const refuseCircle = (gateways: readonly string[], instance: string): void => {
  if (gateways.includes(instance))
    throw new Failure('loop', 'it leads back to this gateway: take it out of "servers" here, or this gateway out of its own', {
      executed: 'no',
    })
}

/** The number of gateways that a request has passed, from `_meta`; 0 for an invalid value. */
export const hopsIn = (meta: JsonObject | undefined): number => {
  const hops = meta instanceof Payload ? meta.value(META.hops) : undefined
  return typeof hops === 'number' && Number.isSafeInteger(hops) && hops > 0 ? hops : 0
}

/** `hops` + 1, for the next gateway; throws `loop` over the limit. */
export const nextHop = (hops: number): number => {
  if (hops >= MAX_HOPS)
    throw new Failure('loop', `${hops} gateways stand before this one already: that is as far as a request goes`, {
      executed: 'no',
    })
  return hops + 1
}

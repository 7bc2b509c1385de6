/**
 * Detects circles of gateways (T-35). Each gateway lists in its handshake answer the gateways its servers lead through, itself
 * first. A gateway that reads its own name there has found a circle. Lists grow along a circle only as fast as names do, so the
 * names are asked for again before lists are read. A circle without names is ended by a limit on the gateways passed.
 */
import { Failure } from '../wire/message/failure.ts'
import { META } from '../wire/protocol/meta.ts'
import { Payload } from '../wire/message/payload.ts'
import type { JsonObject } from '../wire/message/payload.ts'

/** Gateways that a request passes before it reaches a server, at most. */
export const MAX_HOPS = 3
/** Gateways of an answer that are read; more are ignored. */
const MAX_GATEWAYS = 1_000
const MAX_NAME_LENGTH = 64

/** The position of this process in a chain of gateways. */
export interface Position {
  /** Our own name: a random one, of this process. */
  readonly instance: string
  /** Known number of gateways between the host and this process. */
  readonly hops: number
}

/** The gateways behind a server, by its answer, nearest first; none: the server is no gateway. */
export const gatewaysIn = (result: Payload): readonly string[] => {
  const said = result.object('_meta')?.value(META.gateways)
  if (!Array.isArray(said)) return []
  return said.filter((name) => typeof name === 'string' && name.length <= MAX_NAME_LENGTH).slice(0, MAX_GATEWAYS)
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
  const said = meta instanceof Payload ? meta.value(META.hops) : undefined
  return typeof said === 'number' && Number.isSafeInteger(said) && said > 0 ? said : 0
}

/** The number for the next gateway; throws `loop` over the limit. */
export const nextHop = (hops: number): number => {
  if (hops >= MAX_HOPS)
    throw new Failure('loop', `${hops} gateways stand before this one already: that is as far as a request goes`, {
      executed: 'no',
    })
  return hops + 1
}

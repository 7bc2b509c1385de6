/**
 * Seals the `requestState` of a server together with principal, request, endpoint and expiry (BRIDGING 3.2; B061–B066). The server often
 * has one credential for all callers and cannot check these itself.
 */
import type { Purpose, Seal } from '../../auth/seal.ts'
import type { Route } from '../../catalog/view/routes.ts'
import { digestOf } from '../../era/host/request-digest.ts'
import { endpointKey, Refusal } from '../../rpc/call.ts'
import type { Call, InputRequired, Outcome, Resume, StateMaker } from '../../rpc/call.ts'

const PURPOSE: Purpose<Sealed> = 'requestState'

interface Sealed {
  readonly server: string
  /** Absent: the lists of the server were not known, and the exposed name tells what is meant. */
  readonly original?: string
  readonly digest: string
  readonly principal: string
  readonly endpoint: string
  /** Absent: the server sent none. */
  readonly state?: string
  /** Absent: the state is the server's own. */
  readonly maker?: StateMaker
}

/** The round of a retry, and the server it belongs to. */
export interface OpenedRound {
  readonly server: string
  /** `undefined`: the lists of the server were not known. */
  readonly original: string | undefined
  readonly resume: Resume
}

export class Rounds {
  readonly #seal: Seal
  readonly #ttlMs: () => number

  /** `ttlMs`: time limit of a host for one round. */
  constructor(seal: Seal, ttlMs: () => number) {
    this.#seal = seal
    this.#ttlMs = ttlMs
  }

  /** Reads a modern host's retry; `undefined`: a first call. Throws -32602 for a state that does not belong to this call. */
  open(call: Call): OpenedRound | undefined {
    if (call.params.isAbsent('requestState')) return undefined
    const token = call.params.text('requestState')
    if (token === undefined) throw new Refusal(-32602, 'params.requestState must be a string')
    const sealed = this.#seal.open(PURPOSE, token)
    const isOurs =
      sealed !== undefined &&
      sealed.principal === call.caller.principal &&
      sealed.endpoint === endpointKey(call.caller.scope) &&
      sealed.digest === digestOf(call)
    if (!isOurs) throw new Refusal(-32602, 'invalid or expired requestState')
    const { server, original, state, maker } = sealed
    return { server, original, resume: { state, maker, responses: call.params.object('inputResponses')?.fresh() } }
  }

  /** Replaces the server's state by a sealed one. Every round has a state, so that a retry finds its server (BRIDGING 3.2). */
  close({ result, state, maker }: InputRequired, call: Call, { serverKey, original, isByForm }: Route): Outcome {
    const sealed: Sealed = {
      server: serverKey,
      ...(isByForm !== true && { original }),
      digest: digestOf(call),
      principal: call.caller.principal,
      endpoint: endpointKey(call.caller.scope),
      ...(state !== undefined && { state }),
      ...(maker !== undefined && { maker }),
    }
    const token = this.#seal.seal(PURPOSE, sealed, this.#ttlMs())
    result.set('requestState', JSON.stringify(token))
    return { kind: 'input_required', result, state: token }
  }
}

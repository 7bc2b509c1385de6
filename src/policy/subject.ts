/**
 * What expressions see: `caller`, `call` and `request`. Each field may be unknown; reading it then throws `Unknown`, which CEL's `&&`,
 * `||`, `all` and `exists` absorb like an error. So an expression yields a truth value only if no unknown field could change it.
 */
import type { HintName } from '../catalog/hints.ts'

/** A field was read that is not known yet. */
export class Unknown extends Error {
  constructor() {
    super('not known yet')
  }
}

/** In place of a value that is not known yet. */
export const UNKNOWN = Symbol('unknown')
export type Maybe<T> = T | typeof UNKNOWN

export type Claims = Readonly<Record<string, unknown>>

/** `caller` */
export class PolicyCaller {
  readonly principal: string
  readonly claims: Claims
  readonly scopes: readonly string[]
  readonly toolset: string

  constructor(principal: string, claims: Claims, scopes: readonly string[], toolset: string) {
    this.principal = principal
    this.claims = claims
    this.scopes = scopes
    this.toolset = toolset
  }
}

/** `call.annotations`: what is believed of the tool. */
export class PolicyAnnotations implements Readonly<Record<HintName, boolean>> {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean

  constructor(holds: (hint: HintName) => boolean) {
    this.readOnlyHint = holds('readOnlyHint')
    this.destructiveHint = holds('destructiveHint')
    this.idempotentHint = holds('idempotentHint')
    this.openWorldHint = holds('openWorldHint')
  }
}

/** How a call is described to rules. */
export interface PolicyCallFacts {
  readonly method: string
  readonly server: string
  readonly name: Maybe<string>
  readonly original: Maybe<string>
  /** Computed when a rule reads them. */
  readonly annotations: () => PolicyAnnotations
  /** Decoded when a rule reads them; throws where they cannot be judged. */
  readonly arguments: Maybe<() => unknown>
}

/** Something with fields that may be unknown. */
class Partly {
  /** An unknown field was read since this was last set to false: an error may be due to that. */
  hasMissed = false

  protected known<T>(value: Maybe<T>): T {
    if (value !== UNKNOWN) return value
    this.hasMissed = true
    throw new Unknown()
  }
}

/** `call` */
export class PolicyCall extends Partly {
  readonly method: string
  readonly server: string
  readonly #facts: PolicyCallFacts
  #annotations: PolicyAnnotations | undefined

  constructor(facts: PolicyCallFacts) {
    super()
    this.method = facts.method
    this.server = facts.server
    this.#facts = facts
  }

  get name(): string {
    return this.known(this.#facts.name)
  }
  get original(): string {
    return this.known(this.#facts.original)
  }
  get annotations(): PolicyAnnotations {
    return (this.#annotations ??= this.#facts.annotations())
  }
  get arguments(): unknown {
    return this.known(this.#facts.arguments)()
  }
}

/** `request` */
export class PolicyRequest extends Partly {
  readonly revision: string
  readonly host: string
  readonly address: string
  readonly #time: Maybe<() => Date>
  #now: Date | undefined

  constructor(revision: string, host: string, address: string, time: Maybe<() => Date>) {
    super()
    this.revision = revision
    this.host = host
    this.address = address
    this.#time = time
  }

  get time(): Date {
    return (this.#now ??= this.known(this.#time)())
  }
}

/** The variables of an expression. */
export interface Subject {
  readonly caller: PolicyCaller
  readonly call: PolicyCall
  readonly request: PolicyRequest
}

/**
 * The variables of expressions: `caller`, `call` and `request`. Reading an unknown field throws `Unknown`, which CEL's `&&`, `||`, `all`
 * and `exists` absorb like an error, so that an expression yields a value only if no unknown field could change it.
 */
import type { HintName } from '../catalog/hints.ts'
import { refuseOtherKinds } from './arguments.ts'
import type { ReadPath } from './arguments.ts'

/** An unknown field was read. */
export class Unknown extends Error {
  constructor() {
    super('not known yet')
  }
}

/** Stands for an unknown value. */
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

/** `call.annotations`: the trusted hints of the tool. */
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

/** The description of a call for rules. */
export interface PolicyCallFacts {
  readonly method: string
  /** Key of the server. */
  readonly server: string
  /** Exposed name; unknown for a template. */
  readonly name: Maybe<string>
  /** Original name; unknown for a template. */
  readonly original: Maybe<string>
  /** Computed when a rule reads them. */
  readonly annotations: () => PolicyAnnotations
  /** Decoded when a rule reads them; throws `UnjudgedArguments`. */
  readonly arguments: Maybe<() => unknown>
}

/** A variable with fields that may be unknown. */
class PartlyKnown {
  /** An unknown field was read since this was set to false. */
  hasMissed = false

  protected known<T>(value: Maybe<T>): T {
    if (value !== UNKNOWN) return value
    this.hasMissed = true
    throw new Unknown()
  }
}

/** `call` */
export class PolicyCall extends PartlyKnown {
  readonly method: string
  readonly server: string
  /** The members of the arguments that the expression reads. Those of another type than it compares them with are refused. */
  paths: readonly ReadPath[] = []
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
    const args = this.known(this.#facts.arguments)()
    refuseOtherKinds(args, this.paths)
    return args
  }
}

/** `request` */
export class PolicyRequest extends PartlyKnown {
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

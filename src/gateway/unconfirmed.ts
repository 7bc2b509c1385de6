/** The refusal of a call that a person must confirm first. */
import { Refusal } from '../rpc/call.ts'

/** A rule of the policy that asks a person. */
export interface AskingRule {
  /** Path in the configuration. */
  readonly rule: string
  readonly reason: string
}

/** Thrown for an unconfirmed call. Never reaches a host: the confirmation layer asks instead. */
export class Unconfirmed extends Refusal {
  /** `undefined`: the toolset asks before each call of the tool. */
  readonly asking: AskingRule | undefined

  constructor(asking?: AskingRule) {
    super(-32602, 'a person must be asked before this call')
    this.asking = asking
  }
}

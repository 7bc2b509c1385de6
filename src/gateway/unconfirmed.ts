/** What keeps a call from its server until a person has confirmed it. */
import { Refusal } from '../rpc/call.ts'

/** A rule of the policy that asks a person. */
export interface AskingRule {
  /** Its path in the configuration. */
  readonly rule: string
  readonly reason: string
}

/** A call that must be confirmed, and that is not. Reaches no host: the layer asks instead. */
export class Unconfirmed extends Refusal {
  /** `undefined`: the toolset asks before each call of the tool. */
  readonly asking: AskingRule | undefined

  constructor(asking?: AskingRule) {
    super(-32602, 'a person must be asked before this call')
    this.asking = asking
  }
}

/**
 * Runs one tool call at its server: as a task if host and server support tasks, or if the server requires one; in the second case the
 * gateway follows the task and the host gets the result of the call (BRIDGING 3.17).
 */
import type { Entry } from '../../catalog/inventory.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { Refusal, ServerError } from '../../rpc/call.ts'
import type { Call, Outcome } from '../../rpc/call.ts'
import { memberOf } from '../../values/json-object.ts'
import { Payload } from '../../wire/message/payload.ts'
import { isAtLeast } from '../../wire/protocol/revisions.ts'
import { declaresTasks, runsToolsAsTasks, TASKS, withTasks } from '../../wire/protocol/extensions.ts'
import { driveTask } from './driving.ts'

type Support = 'required' | 'optional' | 'forbidden'

/** `plain`: no task. `host`: the host follows the task. `gateway`: the gateway does. */
type Plan = 'plain' | 'host' | 'gateway'

/** The `notify` of a call that may become a task. `isKnown`: the host knows the task. */
type RelatedNotify = (call: Call, downstream: Downstream, isKnown: boolean) => Call['notify']

export class TaskRuns {
  readonly #offersTasks: () => boolean
  readonly #related: RelatedNotify
  readonly #supports = new WeakMap<Entry, Support>()

  constructor(offersTasks: () => boolean, related: RelatedNotify) {
    this.#offersTasks = offersTasks
    this.#related = related
  }

  /** Runs a routed call of any method. `entry`: the tool, if it is listed; `exposed`: its name for the host. */
  run(call: Call, entry: Entry | undefined, downstream: Downstream, exposed = call.target): Promise<Outcome> {
    if (call.method !== 'tools/call') return downstream.handle(call)
    if (call.isUnchanged === true && !isLimited(entry) && this.#offersTasks()) return downstream.handle(call)
    const plan = this.#planOf(call, entry, downstream, exposed)
    const hasAsked = call.caller.session !== undefined && plan === 'host'
    if (plan === 'plain') {
      if (!call.params.isAbsent('task')) downstream.fidelity.note('taskIgnored', call)
      call.params.delete('task')
    } else if (!hasAsked) call.params.set('task', JSON.stringify({ ttl: downstream.options.timeouts.totalMs }))
    const sent =
      plan === 'plain' ? call : { ...call, isUnchanged: false, notify: this.#related(call, downstream, plan === 'host') }
    const mayInsist = downstream.eras.eraFor(call.caller) !== 'legacy' && this.#mayDrive(call, entry, downstream)
    return plan === 'gateway' || mayInsist ? this.#drive(sent, entry, plan, downstream) : downstream.handle(sent)
  }

  async #drive(call: Call, entry: Entry | undefined, plan: Plan, downstream: Downstream): Promise<Outcome> {
    try {
      const outcome = await downstream.handle(call)
      return plan === 'gateway' ? await this.#follow(outcome, call, downstream) : outcome
    } catch (error) {
      if (!isAskedForTasks(error) || !this.#mayDrive(call, entry, downstream)) throw error
      const able: Call = { ...call, caller: { ...call.caller, capabilities: withTasks(call.caller.capabilities) } }
      return this.#follow(await downstream.handle(able), able, downstream)
    }
  }

  async #follow(outcome: Outcome, call: Call, { fidelity, handle, options }: Downstream): Promise<Outcome> {
    if (outcome.kind !== 'task') return outcome
    fidelity.note('taskDriven', call)
    return driveTask(outcome.result, call, handle, call.totalMs ?? options.timeouts.totalMs)
  }

  #planOf(call: Call, entry: Entry | undefined, downstream: Downstream, exposed: string | undefined): Plan {
    const { session, revision, capabilities } = call.caller
    const isAsked =
      session !== undefined && this.#offersTasks() && isAtLeast(revision, '2025-11-25') && !call.params.isAbsent('task')
    const support = runsToolsAsTasks(downstream.eras.inventoryFor(call.caller)?.capabilities ?? {})
      ? this.#supportOf(entry)
      : 'forbidden'
    if (isAsked && (support === 'forbidden' || isLimited(entry)))
      throw new Refusal(-32601, `${exposed} cannot be called as a task`)
    if (support === 'forbidden') return 'plain'
    if (isAsked || (session === undefined && declaresTasks(capabilities))) return 'host'
    return support === 'required' ? 'gateway' : 'plain'
  }

  /** Whether the gateway may follow a task. A modern host that is offered tasks must declare them, unless `driveTasks`. */
  #mayDrive({ caller }: Call, entry: Entry | undefined, { options }: Downstream): boolean {
    if (isLimited(entry)) return true
    const mayNotAsk = caller.session !== undefined || options.driveTasks || !this.#offersTasks()
    return mayNotAsk && !declaresTasks(caller.capabilities)
  }

  #supportOf(entry: Entry | undefined): Support {
    if (entry === undefined) return 'forbidden'
    let support = this.#supports.get(entry)
    if (support === undefined) this.#supports.set(entry, (support = readSupport(entry)))
    return support
  }
}

const readSupport = ({ raw }: Entry): Support => {
  const support = Payload.at(raw).object('execution')?.text('taskSupport')
  return support === 'required' || support === 'optional' ? support : 'forbidden'
}

/** Whether the error is -32021 for the tasks extension: the server requires a task for this call ([ext tasks, Capability Negotiation]). */
const isAskedForTasks = (error: unknown): boolean => {
  if (!(error instanceof ServerError) || error.code !== -32021) return false
  const required = memberOf(error.error.value('data'), 'requiredCapabilities')
  return memberOf(memberOf(required, 'extensions'), TASKS) !== undefined
}

/** Whether the tool has a result limit. It is not applied to results of tasks, so that such a tool never becomes a task of the host. */
const isLimited = (entry: Entry | undefined): boolean => entry?.rule?.result !== undefined

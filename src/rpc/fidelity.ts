/** Records where a call differs on its two sides: a count per server and kind, and a log line. Other calls do not come here. */
import type { Log } from '../values/log.ts'
import type { Call, HostSession } from './call.ts'
import type { Deviation } from './record.ts'

const projected = (feature: string, rule: string, reason: string): Deviation => ({ verdict: 'projected', feature, rule, reason })
const impossible = (feature: string, rule: string, reason: string): Deviation => ({
  verdict: 'impossible',
  feature,
  rule,
  reason,
})

const DEVIATIONS = {
  block: projected('content', 'B107', 'a content block that the host’s revision does not know became text'),
  structured: projected('structured content', 'B108', 'structured content in the shape of the host’s revision'),
  notFound: projected('resources', 'B103', 'the error for a missing resource has the code of the host’s era'),
  completionCut: projected('completion', 'B111', 'more than a hundred values: the rest was cut'),
  completionNone: projected('completion', 'B112', 'the server has no completions: answered with no values'),
  completionContext: impossible('completion', '3.6', 'the server’s revision has no completion context: it was left out'),
  askedByRequest: projected('input', 'B082', 'the input that the server required was requested from the host'),
  askedByRound: projected('input', 'B073', 'a request of the server became an input round of the host'),
  questionForm: projected('elicitation', 'B094', 'the question was changed to the form of the host’s revision'),
  severalChoices: impossible('elicitation', 'B094', 'the host’s revision has no multiple choice: refused to the server'),
  visitByRound: projected('elicitation', 'B089', '-32042 became an input round of the host'),
  visitInWords: impossible('elicitation', 'B089', 'the host has no URL mode: its model got a text in its place'),
  context: impossible('sampling', 'B095', 'includeContext would show other servers: it was left out'),
  samplingShape: impossible('sampling', '3.14', 'the host’s revision has one plain block per message: refused to the server'),
  undeclared: impossible('input', 'B038', 'the host does not declare what the server asked for: refused to the server'),
  unattributed: impossible('input', 'B049', 'the question belongs to no call of a host: refused to the server'),
  notNow: impossible('input', 'B081', 'this request cannot carry a question: declined to the server'),
  configuredRoots: projected('roots', '3.15', 'answered from the configuration'),
  taskByExtension: projected('tasks', '3.17', 'a task of 2025-11-25 was encoded as a task of the extension'),
  taskDriven: projected('tasks', '3.17', 'the host does not follow tasks: the gateway followed this one and answered the call'),
  taskIgnored: impossible('tasks', 'B175', 'the host asked for a task where none is possible: called without one'),
  appName: projected('apps', 'B171', 'an app’s own name for a tool or template was routed to its server'),
} as const satisfies Readonly<Record<string, Deviation>>

export type DeviationName = keyof typeof DEVIATIONS

/** The members of a call that are recorded. */
export type Affected = Pick<Call, 'ref' | 'method' | 'caller' | 'record'>

/** How often a deviation occurred. */
export interface DeviationCount extends Deviation {
  readonly count: number
}

/** The record of one server. */
export class Fidelity {
  readonly #server: string
  readonly #log: Pick<Log, 'debug' | 'info'>
  readonly #counts = new Map<DeviationName, number>()
  /** Impossible deviations that were logged as `info`: once per session, and once for all hosts without a session. */
  readonly #logged = new WeakMap<HostSession | Fidelity, Set<DeviationName>>()

  constructor(server: string, log: Pick<Log, 'debug' | 'info'>) {
    this.#server = server
    this.#log = log
  }

  /** Records a deviation. `call`: the affected call, if there is one; `more`: further facts for the log line. */
  note(name: DeviationName, call?: Affected, more: object = {}): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
    call?.record?.deviated?.(DEVIATIONS[name])
    const { reason, ...deviation } = DEVIATIONS[name]
    const facts = { server: this.#server, ref: call?.ref, method: call?.method, ...deviation, ...more }
    if (deviation.verdict === 'impossible' && this.#isFirst(name, call?.caller.session ?? this)) this.#log.info(facts, reason)
    else this.#log.debug(facts, reason)
  }

  /** All deviations since the start, for `ps`. */
  get counts(): readonly DeviationCount[] {
    return [...this.#counts].map(([name, count]) => ({ ...DEVIATIONS[name], count }))
  }

  #isFirst(name: DeviationName, to: HostSession | Fidelity): boolean {
    const logged = this.#logged.get(to) ?? new Set()
    this.#logged.set(to, logged)
    return logged.size < logged.add(name).size
  }
}

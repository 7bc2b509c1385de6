/**
 * Records translations: a count per server and kind of deviation, and a log line per call. Calls without a deviation do not reach
 * this module and cost nothing.
 */
import type { Call, HostSession } from './call.ts'
import type { Deviation } from './deviation.ts'

const projected = (feature: string, rule: string, reason: string): Deviation => ({ feature, rule, verdict: 'projected', reason })
const impossible = (feature: string, rule: string, reason: string): Deviation => ({
  feature,
  rule,
  verdict: 'impossible',
  reason,
})

const DEVIATIONS = {
  block: projected('content', 'B107', 'a content block that the host’s revision does not know became text'),
  structured: projected('structured content', 'B108', 'structured content in the shape of the host’s revision'),
  notFound: projected('resources', 'B103', 'a missing resource is told with the code of the host’s era'),
  completionCut: projected('completion', 'B111', 'more than a hundred values: the rest was cut'),
  completionNone: projected('completion', 'B112', 'the server completes nothing: answered with no values'),
  completionContext: impossible('completion', '3.6', 'the server’s revision knows no context: it was left out'),
  askedByRequest: projected('input', 'B082', 'what the server required became requests to the host'),
  askedByRound: projected('input', 'B073', 'what the server asked became an input round of the host'),
  questionForm: projected('elicitation', 'B094', 'the question in the form of the host’s revision'),
  severalChoices: impossible('elicitation', 'B094', 'the host’s revision knows no choice of several: refused to the server'),
  visitByRound: projected('elicitation', 'B089', '-32042 became an input round of the host'),
  visitInWords: impossible('elicitation', 'B089', 'the host knows no URL mode: its model was told in words'),
  context: impossible('sampling', 'B095', 'includeContext would show other servers: it was left out'),
  samplingShape: impossible('sampling', '3.14', 'the host’s revision knows one plain block per message: refused to the server'),
  undeclared: impossible('input', 'B038', 'the host does not declare what the server asked for: refused to the server'),
  unattributed: impossible('input', 'B049', 'no call of a host that the question belongs to: refused to the server'),
  notNow: impossible('input', 'B081', 'this request cannot carry a question: declined to the server'),
  configuredRoots: projected('roots', '3.15', 'answered from the configuration'),
  taskByExtension: projected('tasks', '3.17', 'a task of 2025-11-25 in the words of the extension'),
  taskDriven: projected('tasks', '3.17', 'the host follows no tasks: the gateway did, and answered the call'),
  taskIgnored: impossible('tasks', 'B175', 'the host asked for a task where there can be none: called without'),
  appName: projected('apps', 'B171', 'an app’s own name for a tool or template was routed to its server'),
} as const satisfies Readonly<Record<string, Deviation>>

export type DeviationName = keyof typeof DEVIATIONS

/** The recorded members of the affected call. */
export type Affected = Pick<Call, 'ref' | 'method' | 'caller' | 'record'>

/** How often a deviation occurred. */
export interface DeviationCount extends Deviation {
  readonly count: number
}

interface Lines {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
}

/** The record of one server. */
export class Fidelity {
  readonly #server: string
  readonly #log: Lines
  readonly #counts = new Map<DeviationName, number>()
  /** Impossible deviations that were logged: once per session, and once for all hosts without a session. */
  readonly #told = new WeakMap<HostSession | Fidelity, Set<DeviationName>>()

  constructor(server: string, log: Lines) {
    this.#server = server
    this.#log = log
  }

  /** Records a deviation; `call`: the affected call, where there is one. */
  note(name: DeviationName, call?: Affected, more: object = {}): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
    call?.record?.deviated?.(DEVIATIONS[name])
    const { reason, ...deviation } = DEVIATIONS[name]
    const facts = { server: this.#server, ref: call?.ref, method: call?.method, ...deviation, ...more }
    if (deviation.verdict === 'impossible' && this.#isNews(name, call?.caller.session ?? this)) this.#log.info(facts, reason)
    else this.#log.debug(facts, reason)
  }

  /** All deviations since the start, for `ps`. */
  get counts(): readonly DeviationCount[] {
    return [...this.#counts].map(([name, count]) => ({ ...DEVIATIONS[name], count }))
  }

  #isNews(name: DeviationName, to: HostSession | Fidelity): boolean {
    const told = this.#told.get(to) ?? new Set()
    this.#told.set(to, told)
    return told.size < told.add(name).size
  }
}

/**
 * Injects configured faults into calls, for tests of agents (`faults`, `--allow-faults`). A layer around the link to a server, so that an
 * injected fault is handled like a real one: retries, renewal of credentials, detection of the era, errors for hosts. Affected results
 * and errors are marked.
 */
import type { Log } from '../values/log.ts'
import { matchesGlob } from '../catalog/glob.ts'
import { ServerError, toolText } from '../rpc/call.ts'
import type { Call, Handler, Layer, Outcome } from '../rpc/call.ts'
import type { Sweepable } from '../rpc/sweeper.ts'
import { pause } from '../time/pause.ts'
import { Failure } from '../wire/message/failure.ts'
import { META } from '../wire/protocol/meta.ts'
import { Payload } from '../wire/message/payload.ts'
import { LATEST_LEGACY, MODERN } from '../wire/protocol/revisions.ts'
import type { Era } from '../wire/protocol/revisions.ts'

/** The fault of a call. */
export const FAULT_KINDS = ['error', 'tool_error', 'cut', 'hang', 'lost_auth', 'wrong_era'] as const
type FaultKind = (typeof FAULT_KINDS)[number]

export interface FaultRule {
  /** Its name in results, errors and `ps`: `faults[0]`. */
  readonly name: string
  readonly server: string
  /** Globs over original names of tools; `undefined`: all calls of `methods`. */
  readonly tools: readonly string[] | undefined
  readonly methods: readonly string[]
  readonly delayMs: number | undefined
  /** `undefined`: the call is only delayed. */
  readonly kind: FaultKind | undefined
  /** Code of `error`. */
  readonly code: number
  /** Message of `error` and `tool_error`. */
  readonly message: string
  /** Applies to each n-th matching call; 1: each. */
  readonly every: number
  /** Probability for each of those, 0 to 1. */
  readonly share: number
}

/** One rule as `ps` shows it. */
export interface FaultCount {
  readonly rule: string
  /** Description of the fault. */
  readonly what: string
  /** Matching calls, and calls with the fault. */
  readonly calls: number
  readonly injected: number
}

/** The properties of a server that faults depend on. */
interface FaultyServer {
  readonly key: string
  readonly era: Era
  /** `timeouts.idle`; a longer delay is a time-out. */
  readonly idleMs: number
}

interface Counted {
  readonly rule: FaultRule
  calls: number
  injected: number
}

/** Period of the log message that faults are injected. */
const REMIND_MS = 60_000

export class Faults implements Sweepable {
  readonly #log: Pick<Log, 'warn'>
  readonly #random: () => number
  #rules: Counted[] = []
  #remindedMs = -Infinity

  constructor(log: Pick<Log, 'warn'>, random: () => number = Math.random) {
    this.#log = log
    this.#random = random
  }

  /** Replaces the rules and resets the counts. */
  apply(rules: readonly FaultRule[]): void {
    this.#rules = rules.map((rule) => ({ rule, calls: 0, injected: 0 }))
    this.#remindedMs = -Infinity
  }

  get counts(): readonly FaultCount[] {
    return this.#rules.map(({ rule, calls, injected }) => ({ rule: rule.name, what: describeFault(rule), calls, injected }))
  }

  /** Logs at the start, and periodically, that faults are injected. */
  sweep(nowMs: number): void {
    if (this.#rules.length === 0 || nowMs - this.#remindedMs < REMIND_MS) return
    this.#remindedMs = nowMs
    const faults = this.counts.map(({ rule, what, injected }) => `${rule} ${what}: ${injected} injected`)
    this.#log.warn({ faults }, 'faults are injected on purpose (faults, --allow-faults)')
  }

  /** The layer for calls to this server; `undefined`: no rule applies to it. */
  layerOf(server: FaultyServer): Layer | undefined {
    if (!this.#rules.some(({ rule }) => rule.server === server.key)) return undefined
    return (inner) => (call) => {
      const rule = this.#due(server, call)
      return rule === undefined ? inner(call) : inject(rule, server, call, inner)
    }
  }

  /** The first rule that matches the call and is due by `every` and `share`. */
  #due({ key }: FaultyServer, call: Call): FaultRule | undefined {
    return this.#rules.find((counted) => {
      const { rule } = counted
      if (rule.server !== key || !isAbout(rule, call)) return false
      counted.calls++
      if (counted.calls % rule.every !== 0 || this.#random() >= rule.share) return false
      counted.injected++
      return true
    })?.rule
  }
}

const isAbout = ({ tools, methods }: FaultRule, { method, target = '' }: Call): boolean =>
  methods.includes(method) && (tools === undefined || tools.some((pattern) => matchesGlob(pattern, target)))

const inject = async (rule: FaultRule, server: FaultyServer, call: Call, inner: Handler): Promise<Outcome> => {
  const { delayMs = 0, kind, name } = rule
  const waitMs = kind === 'hang' ? Infinity : delayMs
  if (waitMs > 0) await pause(Math.min(waitMs, server.idleMs), call.signal)
  if (call.signal.aborted) return inner(call)
  if (waitMs > server.idleMs) {
    const facts = { amount: Math.round(server.idleMs / 1_000), limit: 'timeouts.idle', injected: name }
    throw new Failure('timeout', `no answer within ${server.idleMs} ms (timeouts.idle; ${name})`, facts)
  }
  return kind === undefined || kind === 'hang' ? marked(await inner(call), rule) : ENDS[kind](rule, server, call, inner)
}

const ENDS: Readonly<
  Record<
    Exclude<FaultKind, 'hang'>,
    (rule: FaultRule, server: FaultyServer, call: Call, inner: Handler) => Promise<Outcome> | Outcome
  >
> = {
  error: ({ name, code, message }) => {
    throw serverError(code, message, name)
  },
  tool_error: (rule, _server, { method }) => {
    const { message, code, name } = rule
    if (method !== 'tools/call') throw serverError(code, message, name)
    return marked(toolText(message, true), rule)
  },
  /** The server executes the call, and its answer is lost. */
  cut: async ({ name }, _server, call, inner) => {
    await inner({ ...call, takesStreams: false })
    throw new Failure('lost', `the connection was cut (${name})`, { injected: name })
  },
  lost_auth: ({ name }) => {
    throw new Failure('auth_required', `HTTP 401 (${name})`, { executed: 'no', status: 401, injected: name })
  },
  wrong_era: ({ name }, { era }) => {
    const supported = [era === 'modern' ? LATEST_LEGACY : MODERN]
    if (era === 'legacy') throw serverError(-32022, 'Unsupported protocol version', name, { supported })
    throw serverError(-32600, 'Bad Request: Server not initialized', name)
  },
}

const serverError = (code: number, message: string, name: string, data: object = {}): ServerError =>
  new ServerError(code, message, Payload.of({ code, message, data: { ...data, [META.fault]: name } }))

/** Marks a result in its `_meta`. */
const marked = (outcome: Outcome, { name }: FaultRule): Outcome => {
  outcome.result.setIn('_meta', META.fault, JSON.stringify(name))
  return outcome
}

/** `files read_*: 2 s late, then error -32603, each 3rd call`. */
const describeFault = ({ server, tools, methods, delayMs, kind, code, every, share }: FaultRule): string => {
  const late = delayMs === undefined ? [] : [`${delayMs / 1_000} s late`]
  const end = kind === undefined ? [] : [kind === 'error' ? `error ${code}` : kind.replace('_', ' ')]
  const which = [every === 1 ? undefined : `one of ${every} calls`, share === 1 ? undefined : `${Math.round(share * 100)} %`]
  const about = tools?.join(', ') ?? methods.join(', ')
  return [`${server} ${about}: ${[...late, ...end].join(', then ')}`, ...which.filter((text) => text !== undefined)].join(', ')
}

/** Options of a policy (`policy` of the configuration). */

export type Decision = 'allow' | 'deny' | 'confirm'

/** Longest expression, and thus longest constant in it. */
export const MAX_EXPRESSION_CHARS = 4_096

export interface PolicyRule {
  /** Path in the configuration and, in parentheses, the name of the rule; used in the audit log and in errors. */
  readonly id: string
  /** CEL, of type bool. */
  readonly when: string
  readonly decision: Decision
  /** Text for the caller. */
  readonly reason: string | undefined
}

export interface PolicyOptions {
  /** The first rule that holds decides. */
  readonly rules: readonly PolicyRule[]
  /** Decides if no rule holds and the service does not decide. */
  readonly otherwise: 'allow' | 'deny'
  /** Decides if no rule holds. */
  readonly service: ServiceOptions | undefined
  /** Larger arguments are not decoded; rules that read them fail. */
  readonly maxArgumentsBytes: number
}

export interface ServiceOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  /** Decides if the service does not answer. */
  readonly onFailure: 'allow' | 'deny'
  /** Whether the service decides what lists show. */
  readonly lists: boolean
  /** What the service may replace. */
  readonly replaces: readonly ('arguments' | 'results')[]
}

export const DEFAULT_SERVICE: Omit<ServiceOptions, 'url'> = {
  headers: {},
  timeoutMs: 1_000,
  maxAnswerBytes: 1024 * 1024,
  onFailure: 'deny',
  lists: true,
  replaces: [],
}

export const DEFAULT_POLICY: PolicyOptions = {
  rules: [],
  otherwise: 'deny',
  service: undefined,
  maxArgumentsBytes: 256 * 1024,
}

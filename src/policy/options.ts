/** What a policy consists of, as `policy` of the configuration says it. */

export type Decision = 'allow' | 'deny' | 'confirm'

/** Characters of an expression, and so of each constant in it. */
export const MAX_EXPRESSION_CHARS = 4_096

export interface PolicyRule {
  /** Path in the configuration and, in parentheses, its name: what the audit log and errors call it. */
  readonly id: string
  /** CEL, of type bool. */
  readonly when: string
  readonly decision: Decision
  /** What the caller is told. */
  readonly reason: string | undefined
}

export interface PolicyOptions {
  /** The first that holds decides. */
  readonly rules: readonly PolicyRule[]
  /** Decides where no rule holds. */
  readonly otherwise: 'allow' | 'deny'
  /** Decides where no rule holds; where it does not decide, `otherwise` does. */
  readonly service: ServiceOptions | undefined
  /** Arguments above this are not decoded: rules that read them fail. */
  readonly maxArgumentsBytes: number
}

export interface ServiceOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  /** What holds where it does not answer. */
  readonly onFailure: 'allow' | 'deny'
  /** Whether it is asked what lists show. */
  readonly lists: boolean
  /** What it may put something else in place of. */
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

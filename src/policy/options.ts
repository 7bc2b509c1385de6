/** What a policy consists of, as `policy` of the configuration says it. */

export type Decision = 'allow' | 'deny' | 'confirm'

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
  /** Arguments above this are not decoded: rules that read them fail. */
  readonly maxArgumentsBytes: number
}

export const DEFAULT_POLICY: PolicyOptions = { rules: [], otherwise: 'deny', maxArgumentsBytes: 256 * 1024 }

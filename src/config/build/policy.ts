/** The policy of a configuration; every mistake in an expression is told with its place. */
import { DEFAULT_POLICY } from '../../policy/options.ts'
import type { PolicyOptions, PolicyRule } from '../../policy/options.ts'
import type { Gathered } from '../read/gather.ts'
import type { Problem } from '../syntax/problems.ts'
import { nearest } from '../syntax/tree.ts'

const MAX_RULES = 1_000

/** `undefined`: there is none, and nothing is decided. */
export const buildPolicy = async ({ settings, sections }: Gathered, problems: Problem[]): Promise<PolicyOptions | undefined> => {
  const { policy } = settings
  if (policy === undefined) return undefined
  const complain = (path: readonly PropertyKey[], message: string, remedy: string): void => {
    const node = nearest(sections.get('policy')!, path)
    problems.push({ place: node.place, path: node.path, message, remedy })
  }
  const given = policy.rules ?? []
  if (given.length > MAX_RULES) complain(['rules'], `holds more than ${MAX_RULES} rules`, 'decide in a service: policy.service')
  const rules = given.slice(0, MAX_RULES).flatMap(({ name, when = 'true', decision, reason }, at): PolicyRule[] => {
    if (decision === undefined) complain(['rules', at], 'decides nothing', 'add decision: allow, deny or confirm')
    else if (decision !== 'allow' && reason === undefined)
      complain(['rules', at], `decides "${decision}" without a reason`, 'add reason: the caller is told it')
    const id = `policy.rules[${at}]`
    return [{ id: name === undefined ? id : `${id} (${name})`, when, decision: decision ?? 'deny', reason }]
  })
  // The library is read where a policy needs it.
  const { faultsOf } = await import('../../policy/policy.ts')
  for (const [at, { fault, at: offset }] of faultsOf(rules.map(({ when }) => when)))
    complain(['rules', at, 'when'], `character ${offset + 1} of the expression: ${fault}`, remedyFor(fault))
  return {
    rules,
    otherwise: policy.default ?? DEFAULT_POLICY.otherwise,
    maxArgumentsBytes: policy.max_arguments ?? DEFAULT_POLICY.maxArgumentsBytes,
  }
}

const FIELDS =
  'known are caller (principal, claims, scopes, toolset), call (method, server, name, original, arguments, annotations) and request (revision, host, address, time)'

const remedyFor = (fault: string): string => (/^(No such key|Unknown variable)/.test(fault) ? FIELDS : 'correct the expression')

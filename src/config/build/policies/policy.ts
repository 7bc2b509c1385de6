/** Options of `policy`; every mistake in an expression is reported with its place. */
import { DEFAULT_POLICY, DEFAULT_SERVICE } from '../../../policy/options.ts'
import type { Decision, PolicyOptions, PolicyRule, ServiceOptions } from '../../../policy/options.ts'
import type { PolicyTest } from '../../../policy/policy-tests.ts'
import { SHARED_PRINCIPAL } from '../../../rpc/call.ts'
import { LATEST_LEGACY } from '../../../wire/protocol/revisions.ts'
import type { ServerOptions } from '../../../downstream/options.ts'
import type { Settings } from '../../schema/file-schema.ts'
import type { Gathered } from '../../read/gather.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem, ReportProblem } from '../../syntax/problems.ts'
import { child, scalarTexts } from '../../syntax/tree.ts'
import type { Tree } from '../../syntax/tree.ts'
import { serviceSchema } from '../../schema/policy-schema.ts'
import { fillFrom } from '../fill.ts'

const MAX_RULES = 1_000

/** `undefined`: no policy is configured. */
export const buildPolicy = async (
  gathered: Gathered,
  servers: readonly ServerOptions[],
  problems: Problem[],
): Promise<PolicyOptions | undefined> => {
  const { settings, sections } = gathered
  const { policy } = settings
  if (policy === undefined) {
    if (settings.policy_tests !== undefined)
      reporterAt(sections.get('policy_tests'), problems)([], '"policy_tests" without policy test nothing', 'add policy')
    return undefined
  }
  const report = reporterAt(sections.get('policy'), problems)
  const given = policy.rules ?? []
  if (given.length > MAX_RULES) report(['rules'], `has more than ${MAX_RULES} rules`, 'decide in a service: policy.service')
  const rules = given.slice(0, MAX_RULES).flatMap(({ name, when = 'true', decision, reason }, at): PolicyRule[] => {
    if (decision === undefined) report(['rules', at], 'decides nothing', 'add decision: allow, deny or confirm')
    else if (decision !== 'allow' && reason === undefined)
      report(['rules', at], `decides "${decision}" without a reason`, 'add reason, which the caller gets')
    const id = `policy.rules[${at}]`
    return [{ id: name === undefined ? id : `${id} (${name})`, when, decision: decision ?? 'deny', reason }]
  })
  // The CEL library is loaded only where there is a policy.
  const { faultsOf } = await import('../../../policy/policy.ts')
  for (const [at, { fault, at: offset }] of faultsOf(rules.map(({ when }) => when)))
    report(['rules', at, 'when'], `character ${offset + 1} of the expression: ${fault}`, remedyFor(fault))
  const policyOptions: PolicyOptions = {
    rules,
    otherwise: policy.default ?? DEFAULT_POLICY.otherwise,
    service: serviceOf(policy.service, report),
    maxArgumentsBytes: policy.max_arguments ?? DEFAULT_POLICY.maxArgumentsBytes,
  }
  if (problems.length === 0) await runTests(policyOptions, gathered, servers, problems)
  return policyOptions
}

const serviceOf = (service: NonNullable<Settings['policy']>['service'], report: ReportProblem): ServiceOptions | undefined => {
  if (service === undefined) return undefined
  const { url } = service
  if (url !== undefined) return fillFrom(serviceSchema, { ...DEFAULT_SERVICE, url }, service)
  report(['service'], 'has no address', 'add url: http://127.0.0.1:8181/v1/data/trunkline/decision')
  return undefined
}

/** Values of the headers that are sent to the policy service. */
export const secretsOfPolicy = (tree: Tree | undefined): readonly string[] =>
  scalarTexts(child(child(tree, 'service'), 'headers'))

/** Adds a problem for each test that fails. */
const runTests = async (
  options: PolicyOptions,
  { settings, sections, servers: known }: Gathered,
  servers: readonly ServerOptions[],
  problems: Problem[],
): Promise<void> => {
  const report = reporterAt(sections.get('policy_tests'), problems)
  const [{ Policy }, { verdictFor }] = await Promise.all([
    import('../../../policy/policy.ts'),
    import('../../../policy/policy-tests.ts'),
  ])
  const policy = new Policy(options)
  for (const [at, given] of (settings.policy_tests ?? []).entries()) {
    const { server, original } = given.call ?? {}
    if (server === undefined || original === undefined) report([at], 'names no call', 'add call: { server: KEY, original: NAME }')
    else if (!known.has(server)) report([at, 'call', 'server'], `there is no server "${server}"`, 'name a key of servers')
    else if (given.expect === undefined) report([at], 'expects nothing', 'add expect: allow, deny or confirm')
    else {
      const prefix = servers.find(({ key }) => key === server)?.prefix ?? server
      const name = given.call?.name ?? (settings.naming?.prefix === 'never' ? original : `${prefix}__${original}`)
      const test = testOf(given, { server, original, name }, given.expect)
      const { decision, rule, detail } = verdictFor(policy, test)
      if (decision === test.expect) continue
      const title = given.name === undefined ? '' : `"${given.name}": `
      const why = detail === undefined ? rule : `${rule}: ${detail}`
      report([at], `${title}expected ${test.expect}, got ${decision} (${why})`, 'correct the rules, or the test')
    }
  }
}

const testOf = (
  { caller = {}, call = {}, request = {} }: NonNullable<Settings['policy_tests']>[number],
  named: { readonly server: string; readonly original: string; readonly name: string },
  expected: Decision,
): PolicyTest => ({
  caller: {
    principal: caller.principal ?? SHARED_PRINCIPAL,
    claims: caller.claims ?? {},
    scopes: caller.scopes ?? [],
    toolset: caller.toolset,
  },
  call: {
    method: call.method ?? 'tools/call',
    ...named,
    arguments: call.arguments,
    annotations: call.annotations ?? {},
  },
  request: {
    revision: request.revision ?? LATEST_LEGACY,
    host: request.host ?? '',
    address: request.address ?? '',
    time: request.time ?? new Date(),
  },
  expect: expected,
})

const FIELDS =
  'known are caller (principal, claims, scopes, toolset), call (method, server, name, original, arguments, annotations) and request (revision, host, address, time)'

const remedyFor = (fault: string): string => (/^(No such key|Unknown variable)/.test(fault) ? FIELDS : 'correct the expression')

/**
 * The client legs of the official conformance suite, with Trunkline as the client: a legacy and a modern host each do through it what
 * the scenario asks for, and their person signs in where the suite's authorization server wants that.
 */
import { expect, test } from 'vitest'
import { runClientConformance } from '../support/conformance.ts'

test.concurrent.each([
  ['initialize', '2025-11-25'],
  ['tools_call', '2025-11-25'],
  ['elicitation-sep1034-client-defaults', '2025-11-25'],
  ['sse-retry', '2025-11-25'],
  ['json-schema-2020-12-preservation', '2025-11-25'],
  ['tools_call', '2026-07-28'],
  ['request-metadata', '2026-07-28'],
  ['sep-2322-client-request-state', '2026-07-28'],
  ['http-standard-headers', '2026-07-28'],
  ['http-custom-headers', '2026-07-28'],
  ['http-invalid-tool-headers', '2026-07-28'],
  ['json-schema-ref-no-deref', '2026-07-28'],
  ['json-schema-2020-12-preservation', '2026-07-28'],
] as const)('as a client passes %s of %s in full', async (scenario, revision) => {
  const { verdict, checks } = await runClientConformance(scenario, revision)
  expect(verdict).toBe('passed')
  expect(checks.some(({ status }) => status === 'SUCCESS')).toBe(true)
  // A modern client sends neither `initialize` nor `initialized`, whose headers the suite would look at.
  const skipped = checks.filter(({ status }) => status === 'SKIPPED')
  expect(skipped).toHaveLength(scenario === 'http-standard-headers' ? 2 : 0)
})

const IN_BOTH = [
  'metadata-default',
  'metadata-var1',
  'metadata-var2',
  'metadata-var3',
  'basic-cimd',
  'scope-from-www-authenticate',
  'scope-from-scopes-supported',
  'scope-omitted-when-undefined',
  'scope-step-up',
  'scope-retry-limit',
  'token-endpoint-auth-basic',
  'token-endpoint-auth-post',
  'token-endpoint-auth-none',
  'pre-registration',
]
const IN_MODERN = [
  'resource-mismatch',
  'offline-access-scope',
  'offline-access-not-supported',
  'authorization-server-migration',
  'iss-supported',
  'iss-not-advertised',
  'iss-supported-missing',
  'iss-wrong-issuer',
  'iss-unexpected',
  'iss-normalized',
  'metadata-issuer-mismatch',
]
const EXTENSIONS = ['client-credentials-jwt', 'client-credentials-basic']
const AUTH = [
  ...IN_BOTH.map((leg) => [leg, '2025-11-25'] as const),
  ...[...IN_BOTH, ...IN_MODERN].map((leg) => [leg, '2026-07-28'] as const),
  ...EXTENSIONS.map((leg) => [leg, undefined] as const),
]

test.concurrent.each(AUTH)('B240–B247 as an OAuth client passes auth/%s of %s', async (leg, revision) => {
  const { verdict, checks } = await runClientConformance(`auth/${leg}`, revision)
  expect(verdict).toBe('passed')
  expect(checks.some(({ status }) => status === 'SUCCESS')).toBe(true)
  expect(checks.filter(({ status }) => status === 'WARNING' || status === 'FAILURE')).toEqual([])
})

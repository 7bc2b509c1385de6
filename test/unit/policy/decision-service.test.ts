/** What a policy service is sent of a caller, and that no answer for one is used for another. */
import { expect, test } from 'vitest'
import { DecisionService } from '../../../src/policy/decision-service.ts'
import { DEFAULT_SERVICE } from '../../../src/policy/options.ts'
import type { Judged } from '../../../src/policy/policy.ts'
import { PolicyAnnotations } from '../../../src/policy/subject.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import type { CallerFacts } from '../../../src/rpc/call.ts'

const FACTS: CallerFacts = { claims: { groups: ['dev'] }, scopes: ['mcp:connect'], address: '10.0.0.7', host: 'editor' }

const judged = (facts: CallerFacts | undefined): Judged => ({
  caller: { principal: 'ann', revision: '2025-11-25', capabilities: {}, scope: EVERYTHING, session: undefined, facts },
  toolset: 'ops',
  method: 'tools/call',
  server: 'bank',
  name: 'bank__pay',
  original: 'pay',
  entry: undefined,
  annotations: () => new PolicyAnnotations(() => false),
})

/** A service that allows everything and lets that be kept. */
const scene = () => {
  const asked: { readonly caller: unknown; readonly request: unknown }[] = []
  const post = (body: string): Promise<string> => {
    asked.push((JSON.parse(body) as { input: (typeof asked)[number] }).input)
    return Promise.resolve('{"result":{"decision":"allow","visible":["bank__pay"],"ttl_seconds":60}}')
  }
  const failed = (message: string): never => expect.fail(message)
  const url = new URL('http://127.0.0.1:9/')
  return { asked, service: new DecisionService({ ...DEFAULT_SERVICE, url }, { post }, { failed }) }
}

test('claims and scopes of a caller are sent; of one without a token, none', async () => {
  const { asked, service } = scene()
  for (const facts of [FACTS, undefined]) await service.decide(judged(facts), undefined)
  expect(asked).toMatchObject([
    {
      caller: { principal: 'ann', toolset: 'ops', claims: { groups: ['dev'] }, scopes: ['mcp:connect'] },
      request: { host: 'editor', address: '10.0.0.7' },
    },
    { caller: { principal: 'ann', toolset: 'ops', claims: {}, scopes: [] }, request: { host: '', address: '' } },
  ])
})

test.each<[what: string, other: CallerFacts]>([
  ['claims', { ...FACTS, claims: { groups: [] } }],
  ['scopes', { ...FACTS, scopes: [] }],
  ['address', { ...FACTS, address: '10.0.0.8' }],
  ['host', { ...FACTS, host: 'other' }],
])('an answer that is kept for a caller is not used for one of other %s', async (_what, other) => {
  const { asked, service } = scene()
  for (const facts of [FACTS, other, FACTS, other]) {
    expect((await service.decide(judged(facts), undefined)).verdict).toMatchObject({ decision: 'allow' })
    expect(await service.visible([judged(facts)])).toEqual(new Set(['bank__pay']))
  }
  // Of each caller one call and one list.
  expect(asked).toHaveLength(4)
})

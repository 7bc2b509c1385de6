/** What a policy service is sent of a caller, how its answers are read, and that no answer for one is used for another. */
import { describe, expect, test } from 'vitest'
import { DecisionService } from '../../../src/policy/decision-service.ts'
import { DEFAULT_SERVICE } from '../../../src/policy/options.ts'
import type { ServiceOptions } from '../../../src/policy/options.ts'
import type { Judged } from '../../../src/policy/policy.ts'
import { PolicyAnnotations, UNKNOWN } from '../../../src/policy/subject.ts'
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

describe('what the service answers', () => {
  /** A service that answers all with one text, and how often it was asked. */
  const answering = (text: string | Error, options: Partial<ServiceOptions> = {}) => {
    const [asked, failures]: [string[], string[]] = [[], []]
    const post = (body: string): Promise<string> => {
      asked.push(body)
      return typeof text === 'string' ? Promise.resolve(text) : Promise.reject(text)
    }
    const failed = (message: string): void => void failures.push(message)
    const url = new URL('http://127.0.0.1:9/')
    return { asked, failures, service: new DecisionService({ ...DEFAULT_SERVICE, url, ...options }, { post }, { failed }) }
  }
  const RULE = 'policy.service'
  const ALLOWED = { decision: 'allow', rule: RULE, reason: undefined }
  const DENIED = { decision: 'deny', rule: RULE, reason: 'the policy service denies it' }

  test.each([
    ['{"result":true}', ALLOWED],
    ['{"result":false}', DENIED],
    ['{"result":{"allow":true}}', ALLOWED],
    ['{"result":{"allow":false}}', DENIED],
    ['{"result":{"decision":"confirm"}}', { decision: 'confirm', rule: RULE, reason: 'The policy service asks.' }],
    [
      '{"result":{"decision":"deny","reason":"no\\u0007 pay","rule":"r1"}}',
      { decision: 'deny', rule: `${RULE} (r1)`, reason: expect.stringMatching(/^no\s*pay$/) as unknown },
    ],
    ['{"result":{"reason":"no"}}', undefined],
    ['{}', undefined],
  ])('%s is a verdict', async (text, verdict) => {
    const { service, failures } = answering(text)
    expect((await service.decide(judged(FACTS), undefined)).verdict).toEqual(verdict)
    expect(failures).toEqual([])
  })

  test.each<[text: string | Error, failure: RegExp]>([
    ['{"result":{"decision":"maybe"}}', /"decision" is not allow, deny or confirm/],
    ['allow', /something else than JSON/],
    ['[]', /without "result"/],
    ['{"result":1}', /without "result"/],
    ['{"result":{"allow":true,"arguments":{"a":1}}}', /"arguments" are replaced/],
    ['{"result":{"allow":true,"content":[]}}', /"content" is replaced/],
    [new Error('refused'), /^refused$/],
  ])('%s is a failure, and on_failure decides', async (text, failure) => {
    const { service, failures } = answering(text)
    const { verdict } = await service.decide(judged(FACTS), undefined)
    expect(verdict).toMatchObject({
      decision: 'deny',
      rule: `${RULE}.on_failure`,
      detail: expect.stringMatching(failure) as unknown,
    })
    expect(failures).toEqual([expect.stringMatching(failure)])
    const open = answering(text, { onFailure: 'allow' })
    expect((await open.service.decide(judged(FACTS), undefined)).verdict).toMatchObject({ decision: 'allow' })
  })

  test.each<[given: string, what: string]>([
    ['"arguments":{"a": 1}', '{"a": 1}'],
    ['"content":[ {"type":"text"} ]', '[ {"type":"text"} ]'],
  ])('%s replaces what it names with its own bytes, and is not kept', async (given, bytes) => {
    const options = { replaces: ['arguments', 'results'] } as const
    const { service, asked } = answering(`{"result":{"allow":true,"ttl_seconds":60,${given}}}`, options)
    for (let times = 0; times < 2; times++) {
      const answer = await service.decide(judged(FACTS), undefined)
      expect([answer.arguments ?? answer.content, answer.arguments && answer.content].map(String)).toEqual([bytes, 'undefined'])
    }
    expect(asked).toHaveLength(2)
    for (const wrong of ['"arguments":[]', '"content":{}'])
      expect(
        (await answering(`{"result":{"allow":true,${wrong}}}`, options).service.decide(judged(FACTS), undefined)).verdict,
      ).toMatchObject({ decision: 'deny' })
  })

  test.each([
    ['60', 1],
    ['0', 2],
    ['-1', 2],
    ['"60"', 2],
  ])('a decision and a list with ttl_seconds %s are asked for %i times in two', async (ttl, times) => {
    const { service, asked } = answering(`{"result":{"decision":"allow","ttl_seconds":${ttl}}}`)
    for (const _ of [1, 2]) await service.decide(judged(FACTS), undefined)
    expect(asked).toHaveLength(times)
    for (const _ of [1, 2]) await service.visible([judged(FACTS)])
    expect(asked).toHaveLength(2 * times)
  })

  test.each<[text: string | Error, shown: readonly string[] | undefined, whenOpen: readonly string[] | undefined]>([
    ['{"result":{"visible":["a",1,"b"]}}', ['a', 'b'], ['a', 'b']],
    ['{"result":{"visible":"all"}}', [], undefined],
    ['{"result":{}}', undefined, undefined],
    ['{"result":true}', undefined, undefined],
    [new Error('refused'), [], undefined],
  ])('a list with %s shows %j; if a failure allows, %j', async (text, shown, whenOpen) => {
    const names = async (options: Partial<ServiceOptions>) => await answering(text, options).service.visible([judged(FACTS)])
    expect(await names({})).toEqual(shown && new Set(shown))
    expect(await names({ onFailure: 'allow' })).toEqual(whenOpen && new Set(whenOpen))
  })

  test('a template has no name in the question, and a list of nothing asks nothing', async () => {
    const { service, asked } = answering('{}')
    expect(await service.visible([])).toBeUndefined()
    await service.visible([judged(FACTS), { ...judged(FACTS), name: UNKNOWN, original: UNKNOWN }])
    const [question] = asked.map((body) => (JSON.parse(body) as { input: { list: unknown } }).input.list)
    expect(asked).toHaveLength(1)
    expect(question).toEqual([
      expect.objectContaining({ name: 'bank__pay', original: 'pay' }),
      expect.not.objectContaining({ name: expect.anything() as unknown }),
    ])
    expect(JSON.stringify(question).match(/"original"/g)).toHaveLength(1)
  })
})

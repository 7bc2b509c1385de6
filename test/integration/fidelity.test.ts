/** What was translated and what was impossible is written down: counted per server for `ps`, per call in the log (issue part 8). */
import { expect, test } from 'vitest'
import { serverStatuses } from '../../src/admin/state/status.ts'
import { fake } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const audio = { content: [{ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }] }
const countsOf = ({ running }: TestGateway): object =>
  Object.fromEntries(serverStatuses(running).map(({ key, fidelity }) => [key, fidelity]))

test('a call that passes in full leaves no record', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('echo') } })
  for (const { connect } of [legacyHttp, modernHttp]) {
    await using host = await connect(gateway)
    await host.call('tools/call', { name: 'a__echo' })
  }
  expect(countsOf(gateway)).toEqual({ a: [] })
  expect(gateway.log.entries.filter(({ facts }) => 'verdict' in facts)).toEqual([])
})

test('B107 a projection is counted for its server alone, and each call has its line', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['say'], on: { 'tools/call': () => audio } }), b: fake.offering('other') },
  })
  await using host = await legacyHttp.connect(gateway, { revision: '2024-11-05' })
  await host.call('tools/call', { name: 'a__say' })
  await host.call('tools/call', { name: 'a__say' })
  await host.call('tools/call', { name: 'b__other' })
  const block = { feature: 'content', rule: 'B107', verdict: 'projected' }
  expect(countsOf(gateway)).toEqual({ a: [{ ...block, reason: expect.any(String), count: 2 }], b: [] })
  const lines = gateway.log.entries.filter(({ facts }) => facts['verdict'] !== undefined)
  expect(lines).toMatchObject([1, 2].map(() => ({ level: 'debug', facts: { server: 'a', method: 'tools/call', ...block } })))
  expect(new Set(lines.map(({ facts }) => facts['ref'])).size).toBe(2)
})

test.each([
  ['2025-03-26', [{ feature: 'completion', rule: '3.6', verdict: 'impossible', count: 1 }]],
  ['2025-06-18', []],
] as const)('3.6 the context of a completion is left out for a server of %s: %j', async (revision, noted) => {
  const prompt = { name: 'p', arguments: [{ name: 'x' }] }
  const answer = { completion: { values: ['v'] } }
  const a = fake.of({ kind: 'legacy http', revision, prompts: [prompt], on: { 'completion/complete': () => answer } })
  await using gateway = await startGateway({ servers: { a } })
  await using host = await legacyHttp.connect(gateway, { revision: '2025-11-25' })
  const ref = { type: 'ref/prompt', name: 'a__p' }
  const argument = { name: 'x', value: '' }
  await host.call('completion/complete', { ref, argument, context: { arguments: { y: 'z' } } })
  expect(countsOf(gateway)).toMatchObject({ a: noted })
  expect(Object.values(countsOf(gateway))).toEqual([
    expect.toSatisfy((found: readonly unknown[]) => found.length === noted.length),
  ])
})

test('B038 what was impossible is told at info once per session, and counted each time', async () => {
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        tools: ['ask'],
        on: {
          'tools/call': async (turn) => {
            const { error } = await turn.ask('elicitation/create', { message: 'Which?', requestedSchema: { type: 'object' } })
            return { content: [{ type: 'text', text: String(error?.code) }] }
          },
        },
      }),
    },
  })
  for (let session = 0; session < 2; session++) {
    await using host = await legacyHttp.connect(gateway)
    for (let call = 0; call < 2; call++)
      expect(await host.call('tools/call', { name: 'a__ask' })).toMatchObject({ content: [{ text: '-32601' }] })
  }
  expect(countsOf(gateway)).toMatchObject({ a: [{ feature: 'input', rule: 'B038', verdict: 'impossible', count: 4 }] })
  const levels = gateway.log.entries.flatMap(({ level, facts }) => (facts['verdict'] === 'impossible' ? [level] : []))
  expect(levels).toEqual(['info', 'debug', 'info', 'debug'])
})

test('B073 B082 a question that changes its form on the way to the host says so', async () => {
  const question = { method: 'elicitation/create', params: { message: 'Which?', requestedSchema: { type: 'object' } } }
  const done = { content: [] }
  await using gateway = await startGateway({
    servers: {
      old: fake.of({
        tools: ['ask'],
        on: { 'tools/call': async (turn) => (await turn.ask(question.method, question.params), done) },
      }),
      new: fake.of({
        kind: 'modern http',
        tools: ['ask'],
        on: {
          'tools/call': ({ params }) =>
            params['inputResponses'] === undefined ? { resultType: 'input_required', inputRequests: { q: question } } : done,
        },
      }),
    },
  })
  const capabilities = { elicitation: { form: {} } }
  await using modern = await modernHttp.connect(gateway, { capabilities })
  await using legacy = await legacyHttp.connect(gateway, { capabilities })
  legacy.answer('elicitation/create', () => ({ action: 'decline' }))
  expect(await modern.call('tools/call', { name: 'old__ask' })).toMatchObject({ resultType: 'input_required' })
  expect(await legacy.call('tools/call', { name: 'new__ask' })).toMatchObject(done)
  const projected = { verdict: 'projected', feature: 'input', count: 1 }
  const askedByRound = { ...projected, rule: 'B073', reason: 'a request of the server became an input round of the host' }
  const reason = 'the input that the server required was requested from the host'
  const askedByRequest = { ...projected, rule: 'B082', reason }
  expect(countsOf(gateway)).toEqual({ old: [askedByRound], new: [askedByRequest] })
  // Of one era, nothing changes its form.
  expect(await modern.call('tools/call', { name: 'new__ask' })).toMatchObject({ resultType: 'input_required' })
  expect(countsOf(gateway)).toEqual({ old: [askedByRound], new: [askedByRequest] })
})

/** How `trunkline why` explains the name or URI that hosts see; the whole chain of rules is in test/integration/cli/why.test.ts. */
import { expect, test } from 'vitest'
import { explain } from '../../../src/admin/explain/why.ts'
import type { ServerOptions } from '../../../src/downstream/options.ts'
import { curated } from '../../support/curation.ts'
import { fake } from '../../support/fake-downstream.ts'
import { startGateway } from '../../support/gateway.ts'

const LONG = 'l'.repeat(60)
const UNPLAIN = ': its own name is too long or has other characters'

/** What names it, where that is said, and whether it is too long or has other characters. */
const namedBy = async (original: string, options: Partial<ServerOptions>) => {
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        tools: ['x', 'x.y', LONG],
        prompts: ['p.q'],
        resources: ['file:///x', `file:///${LONG}`],
        templates: ['file:///{y}'],
      }),
    },
    options: { a: options },
  })
  const end = explain(gateway.running, original, undefined)
  if (end.kind !== 'known') throw new Error(`${original} is ${end.kind}`)
  const [{ exposed = '', steps }] = end.all as [(typeof end.all)[number]]
  const { effect, what, path, place } = steps.at(-1)!
  expect([effect, what.startsWith(`hosts call it ${JSON.stringify(exposed)}`)]).toEqual(['renames', true])
  return { exposed, path, place, remark: what.slice(`hosts call it ${JSON.stringify(exposed)}`.length) }
}

test.each<[original: string, exposed: string | RegExp, path: string, remark: string]>([
  ['x', 'a__x', 'naming', ''],
  ['x.y', /^a__x_y_[a-z2-7]{8}$/, 'naming', UNPLAIN],
  [LONG, /^a__l+_[a-z2-7]{8}$/, 'naming', UNPLAIN],
  ['p.q', /^a__p_q_[a-z2-7]{8}$/, 'naming', UNPLAIN],
  // No option says how URIs begin but the prefix itself.
  ['file:///x', 'a+file:///x', '', ''],
  [`file:///${LONG}`, `a+file:///${LONG}`, '', ''],
  ['file:///{y}', 'a+file:///{y}', '', ''],
])('%s is called by the key of its server', async (original, exposed, path, remark) => {
  const named = await namedBy(original, {})
  expect(named).toMatchObject({ path, place: '', remark })
  if (typeof exposed === 'string') expect(named.exposed).toBe(exposed)
  else expect(named.exposed).toMatch(exposed)
})

test.each([
  ['x', 'al__x'],
  ['file:///x', 'al+file:///x'],
  ['file:///{y}', 'al+file:///{y}'],
])('%s is called by the prefix that its server was given, with the place of that', async (original, exposed) => {
  const named = await namedBy(original, { prefix: 'al' })
  expect(named).toEqual({ exposed, path: 'servers.a.prefix', place: 'test:a', remark: '' })
})

test('an alias, and another name, are no sign of a name that is too long or has other characters', async () => {
  expect(await namedBy('x.y', { alias: { 'x.y': 'nice' } })).toMatchObject({ exposed: 'nice', remark: '' })
  expect(await namedBy('p.q', { alias: { 'p.q': 'nice' } })).toMatchObject({ exposed: 'nice', remark: '' })
  expect(await namedBy('x.y', await curated({ tools: { 'x.y': { name: 'nice' } } }))).toMatchObject({
    exposed: 'a__nice',
    remark: '',
  })
  const again = await namedBy('x', await curated({ tools: { x: { name: 'm'.repeat(60) } } }))
  expect(again).toMatchObject({ exposed: expect.stringMatching(/^a__m+_[a-z2-7]{8}$/) as string, remark: UNPLAIN })
})

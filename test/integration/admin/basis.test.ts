/** What another process is told to make a plan from: nothing secret, and no more than that is changed. */
import { expect, test } from 'vitest'
import { basisOf, decodeBasis, encodeBasis } from '../../../src/admin/change/basis.ts'
import { isEmpty, makePlan } from '../../../src/admin/change/plan.ts'
import { Redactor } from '../../../src/redactor.ts'
import { fake } from '../../support/fake-downstream.ts'
import type { FakeSpec } from '../../support/fake-downstream.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

const SECRET = 'sk-running-0123456789'
const inputSchema = { type: 'object' }

const serving = (spec: FakeSpec): Promise<TestGateway> => startGateway({ servers: { a: fake.of(spec) } })
/** As it crosses the admin socket. */
const sentBy = ({ running }: TestGateway): string => {
  const redactor = new Redactor([SECRET])
  return JSON.stringify(encodeBasis(basisOf(running, { env: {} }, (value) => redactor.hideIn(value))))
}
const received = (json: string) => decodeBasis(JSON.parse(json) as Parameters<typeof decodeBasis>[0])

test('T-14 what a server says is told without secrets and else as it is, and a plan made from it shows no change', async () => {
  await using gateway = await serving({
    tools: ['plain', { name: 'ask', description: `send "${SECRET}"`, inputSchema }],
    prompts: [{ name: 'p', description: SECRET }],
    resources: [`file:///${SECRET}`],
    instructions: `use ${SECRET}`,
  })
  const sent = sentBy(gateway)
  expect(sent).not.toContain(SECRET)
  const basis = received(sent)
  expect(basis.servers[0]?.offered?.lists.tools.map(({ raw }) => raw.toString())).toEqual([
    JSON.stringify({ name: 'plain', inputSchema }),
    JSON.stringify({ name: 'ask', description: 'send "***"', inputSchema }),
  ])
  const plan = makePlan(basis, gateway.running.configuration, {})
  expect(plan.entries).toEqual([])
  expect(isEmpty(plan)).toBe(true)
})

test('T-14 the name of a tool that repeats a secret is told nowhere', async () => {
  await using gateway = await serving({ tools: [`ask_${SECRET}`] })
  const sent = sentBy(gateway)
  expect(sent).not.toContain(SECRET)
  const [server] = received(sent).servers
  expect(server?.offered?.lists.tools.map(({ original }) => original)).toEqual(['ask_***'])
  expect(Object.keys(server?.pins ?? {})).toEqual(['ask_***'])
})

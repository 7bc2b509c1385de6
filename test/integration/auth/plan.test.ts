/** A plan while nobody has signed in: the tool for signing in stands in the place of lists, and is no change. */
import { expect, test, vi } from 'vitest'
import { basisOf } from '../../../src/admin/change/basis.ts'
import { isEmpty, makePlan } from '../../../src/admin/change/plan.ts'
import { PER_USER } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import { startGateway } from '../../support/gateway.ts'

test.each([
  ['the operator', { ...PER_USER, perUser: false }, false],
  ['each caller', PER_USER, true],
])('a server that %s has not signed in to is planned as it is shown', async (_name, credential, isPerUser) => {
  await using issuer = await FakeIssuer.start()
  await using server = await FakeDownstream.start(fake.offering('echo'))
  protect(server, issuer)
  await using gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', server]]),
    options: { a: { credential } },
    early: true,
  })
  const { running } = gateway
  const plan = () => makePlan(basisOf(running, { env: {} }), running.configuration, {})
  const isShown = (): boolean => running.gateway.feed.catalog.lists.tools.length > 0
  if (!isPerUser) await vi.waitUntil(isShown)
  expect(isEmpty(plan())).toBe(true)
  expect(plan().total.before).toEqual(plan().total.after)
})

/** Which subscribers get an update of a resource that nobody watches any more (BRIDGING 3.8). */
import { expect, test } from 'vitest'
import type { Reconnected } from '../../../src/downstream/environment.ts'
import { Subscriptions } from '../../../src/gateway/subscriptions.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

test('3.8 an update of what was left is for nobody, for the latest 1,024 resources', async () => {
  const subscriptions = new Subscriptions(() => 10)
  // Cast: the members that are used.
  const server = { id: 'a', subscribe: async () => true, unsubscribe: async () => undefined } as unknown as Reconnected
  const { caller } = callOf()
  const watch = (uri: string, got: string[]) => {
    const subscriber = { updated: (params: Payload) => void got.push(params.text('uri') ?? '') }
    const interest = { caller, exposed: uri, isShown: () => true, expose: (original: string) => original }
    return { subscriber, added: subscriptions.add(subscriber, server, uri, interest) }
  }
  const got: string[] = []
  await watch('x:kept', got).added
  for (let at = 0; at <= 1_024; at++) {
    const { subscriber, added } = watch(`x:${at}`, [])
    await added
    subscriptions.remove(subscriber, 'a', `x:${at}`)
  }
  for (const at of [1_024, 1, 0]) subscriptions.updated('a', `x:${at}`, Payload.of({ uri: `x:${at}` }))
  // Of what was left long ago it is not known whether it ever was: an update may mean anything that is watched.
  expect(got).toEqual(['x:0'])
})

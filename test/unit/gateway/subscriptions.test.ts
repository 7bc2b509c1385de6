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

test('B257 each spelling of a watched resource counts towards limits.subscriptions until it is left', async () => {
  const subscriptions = new Subscriptions(() => 2)
  // Cast: the members that are used.
  const server = { id: 'a', subscribe: async () => true, unsubscribe: async () => undefined } as unknown as Reconnected
  const { caller } = callOf()
  const subscriber = { updated: () => undefined }
  const watch = (original: string, exposed: string): Promise<boolean> =>
    subscriptions.add(subscriber, server, original, { caller, exposed, isShown: () => true, expose: () => exposed })
  for (const spelling of ['x:1', 'a+x:1', 'x:1']) expect(await watch('x:1', spelling)).toBe(true)
  const refusal = { kind: 'overloaded', facts: { limit: 'limits.subscriptions' } }
  for (const [original, exposed] of [
    ['x:2', 'x:2'],
    ['x:1', 'A+x:1'],
  ] as const)
    await expect(watch(original, exposed)).rejects.toMatchObject(refusal)
  expect(subscriptions.remove(subscriber, 'a', 'x:1', 'x:9')).toBe(false)
  await expect(watch('x:2', 'x:2')).rejects.toMatchObject(refusal)
  expect(subscriptions.remove(subscriber, 'a', 'x:1', 'a+x:1')).toBe(false)
  expect(await watch('x:2', 'x:2')).toBe(true)
  await expect(watch('x:3', 'x:3')).rejects.toMatchObject(refusal)
  expect(subscriptions.remove(subscriber, 'a', 'x:1', 'x:1')).toBe(true)
  expect(subscriptions.remove(subscriber, 'a', 'x:2')).toBe(true)
  for (const uri of ['x:3', 'x:4']) expect(await watch(uri, uri)).toBe(true)
  await expect(watch('x:5', 'x:5')).rejects.toMatchObject(refusal)
})

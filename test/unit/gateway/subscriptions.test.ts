/** Which subscribers get an update of a resource that nobody watches any more (BRIDGING 3.8). */
import { expect, test } from 'vitest'
import type { Reconnected } from '../../../src/downstream/environment.ts'
import { Subscriptions } from '../../../src/gateway/subscriptions.ts'
import type { Subscriber } from '../../../src/gateway/subscriptions.ts'
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

/** Subscriptions of one server that the test answers, and who watches what. */
const makeServer = () => {
  const subscriptions = new Subscriptions(() => 10)
  const asked: string[] = []
  const answer = { subscribe: async () => true, unsubscribe: async () => undefined as void }
  const make = (id: string): Reconnected =>
    // Cast: the members that are used.
    ({
      id: 'a',
      subscribe: async (uri: string) => (asked.push(`${id} + ${uri}`), answer.subscribe()),
      unsubscribe: async (uri: string) => (asked.push(`${id} - ${uri}`), answer.unsubscribe()),
    }) as unknown as Reconnected
  const { caller } = callOf()
  const got: string[] = []
  const makeSubscriber = (name: string) => ({ updated: (params: Payload) => void got.push(`${name} ${params.text('uri')}`) })
  const watch = (subscriber: Subscriber, uri: string, server = make('one')): Promise<boolean> =>
    subscriptions.add(subscriber, server, uri, { caller, exposed: uri, isShown: () => true, expose: (original) => original })
  const change = (uri: string): void => subscriptions.updated('a', uri, Payload.of({ uri }))
  return { subscriptions, asked, answer, make, got, makeSubscriber, watch, change }
}

test('B131 who was refused a resource watches nothing, and the next one asks the server again', async () => {
  const { asked, answer, got, makeSubscriber, watch, change } = makeServer()
  const [ann, bob] = [makeSubscriber('ann'), makeSubscriber('bob')]
  answer.subscribe = async () => false
  expect(await watch(ann, 'x:1')).toBe(false)
  answer.subscribe = async () => true
  expect(await watch(bob, 'x:1')).toBe(true)
  change('x:1')
  expect(got).toEqual(['bob x:1'])
  expect(asked).toEqual(['one + x:1', 'one + x:1'])
})

test('B133 an update below several watched resources arrives once', async () => {
  const { got, makeSubscriber, watch, change } = makeServer()
  const ann = makeSubscriber('ann')
  await watch(ann, 'x://1')
  await watch(ann, 'x://1/2')
  change('x://1/2/3')
  expect(got).toEqual(['ann x://1/2/3'])
})

test('B133 an update of a watched resource is for its own subscribers, not for those of one above or of another', async () => {
  const { got, makeSubscriber, watch, change } = makeServer()
  for (const [name, uri] of [
    ['ann', 'x://1'],
    ['bob', 'x://1/2'],
    ['carl', 'y:1'],
  ] as const)
    await watch(makeSubscriber(name), uri)
  for (const uri of ['x://1/2', 'x://1', 'x://1/3']) change(uri)
  expect(got).toEqual(['bob x://1/2', 'ann x://1', 'ann x://1/3'])
})

test('B133 an update of what nobody watches, nor anything above it, is for all who watch a resource of that server', async () => {
  const { got, makeSubscriber, watch, change } = makeServer()
  for (const name of ['ann', 'bob']) await watch(makeSubscriber(name), `x://${name}`)
  change('z:1')
  expect(got).toEqual(['ann z:1', 'bob z:1'])
})

test('B133 a resource whose name only begins alike is not below another', async () => {
  const { got, makeSubscriber, watch, change } = makeServer()
  await watch(makeSubscriber('ann'), 'x://1')
  await watch(makeSubscriber('bob'), 'x://12')
  change('x://12/3')
  expect(got).toEqual(['bob x://12/3'])
})

test('B132 a new subscription waits for the end of the old one, so that the server sees them in this order', async () => {
  const { subscriptions, asked, answer, makeSubscriber, watch } = makeServer()
  const ann = makeSubscriber('ann')
  await watch(ann, 'x:1')
  const { promise, resolve } = Promise.withResolvers<void>()
  answer.unsubscribe = () => promise
  subscriptions.remove(ann, 'a', 'x:1')
  const again = watch(ann, 'x:1')
  await new Promise((done) => setImmediate(done))
  expect(asked).toEqual(['one + x:1', 'one - x:1'])
  resolve()
  expect(await again).toBe(true)
  expect(asked).toEqual(['one + x:1', 'one - x:1', 'one + x:1'])
})

test('B134 after a failed subscription the next one asks again; after a reconnect the new connection is asked, and left', async () => {
  const { subscriptions, asked, answer, make, got, makeSubscriber, watch } = makeServer()
  const [ann, bob] = [makeSubscriber('ann'), makeSubscriber('bob')]
  answer.subscribe = () => Promise.reject(new Error('not connected'))
  await expect(watch(ann, 'x:1')).rejects.toThrow('not connected')
  answer.subscribe = async () => true
  expect(await watch(bob, 'x:1')).toBe(true)
  await subscriptions.restore(make('two'))
  expect(got).toEqual(['ann x:1', 'bob x:1'])
  subscriptions.release(ann)
  subscriptions.release(bob)
  await new Promise((done) => setImmediate(done))
  expect(asked).toEqual(['one + x:1', 'one + x:1', 'two + x:1', 'two - x:1'])
})

test('B134 after a reconnect to a server that no longer offers the subscription nobody is told anything', async () => {
  const { subscriptions, answer, make, got, makeSubscriber, watch } = makeServer()
  await watch(makeSubscriber('ann'), 'x:1')
  answer.subscribe = async () => false
  await subscriptions.restore(make('two'))
  answer.subscribe = () => Promise.reject(new Error('not connected'))
  await subscriptions.restore(make('three'))
  expect(got).toEqual([])
})

test('B134 who is not shown a resource any more is not told of it after a reconnect', async () => {
  const { subscriptions, make, got, makeSubscriber, watch } = makeServer()
  await watch(makeSubscriber('ann'), 'x:1')
  const { caller } = callOf()
  const hidden = { caller, exposed: 'x:1', isShown: () => false, expose: (original: string) => original }
  await subscriptions.add(makeSubscriber('bob'), make('one'), 'x:1', hidden)
  await subscriptions.restore(make('two'))
  expect(got).toEqual(['ann x:1'])
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

/** How long a sign-in waits, for whom, and who is told of its end (BRIDGING 6.3.5, 6.4; T-08). */
import { expect, test } from 'vitest'
import type { PendingAuthorization } from '../../../../src/auth/authorization-server/authorization.ts'
import type { Interactive, Return } from '../../../../src/auth/outbound/credential.ts'
import { SIGN_IN_TTL_MS, SignIns } from '../../../../src/auth/outbound/sign-ins.ts'
import type { SignIn } from '../../../../src/auth/outbound/sign-ins.ts'

const BASE = 'https://gw.test'

/** Sign-ins by a clock that stands until it is set, what was announced of them, and a provider that may refuse. */
const scene = () => {
  const time = { nowMs: 0 }
  const announced: string[] = []
  const provider: { refuses: Error | undefined; meanwhile: () => void } = { refuses: undefined, meanwhile: () => undefined }
  const begun: Return[] = []
  const finished: unknown[] = []
  let states = 0
  const interactiveOf = (principal: string): Interactive => ({
    principal,
    begin: async (back) => {
      provider.meanwhile()
      if (provider.refuses !== undefined) throw provider.refuses
      begun.push(back)
      const state = `state-${++states}`
      return { url: `https://idp.test/?state=${state}`, pending: { state } as PendingAuthorization }
    },
    finish: async ({ state }, answer) => {
      if (provider.refuses !== undefined) throw provider.refuses
      finished.push([state, answer.get('code')])
    },
  })
  const signIns = new SignIns(
    async () => BASE,
    () => time.nowMs,
    async (name) => void announced.push(name),
  )
  const begin = (id: string, browser = 'this one') => signIns.begin(id, browser, (base) => `${base}/client.json`)
  const finish = (state: string, browser: string | undefined = 'this one') =>
    signIns.finish(new URLSearchParams({ state, code: 'c' }), browser)
  const endsOf = (signIn: SignIn): string[] => {
    const ends: string[] = []
    signIn.onEnd((end) => void ends.push(end))
    return ends
  }
  return { signIns, time, announced, provider, begun, finished, interactiveOf, begin, finish, endsOf }
}

test('a sign-in has one link until it ends, and other replicas know of it', async () => {
  const { signIns, announced, interactiveOf } = scene()
  const [alice, bob] = [interactiveOf('alice'), interactiveOf('bob')]
  const { signIn, url } = await signIns.ask(alice, 'Orders')
  expect([signIn.principal, signIn.displayName, url]).toEqual(['alice', 'Orders', `${BASE}/connect/${signIn.id}`])
  expect((await signIns.ask(alice, 'Orders')).signIn).toBe(signIn)
  const other = (await signIns.ask(bob, 'Orders')).signIn
  expect(new Set([signIn.id, signIn.code, other.id, other.code]).size).toBe(4)
  expect(announced).toEqual([signIn.id, signIn.id, other.id])
  expect([signIns.find(signIn.id), signIns.find('x'), signIns.has(other.id), signIns.has('x')]).toEqual([
    signIn,
    undefined,
    true,
    false,
  ])
})

test('T-08 a sign-in ends once, with the answer to the browser that consented', async () => {
  const { signIns, announced, begun, finished, interactiveOf, begin, finish, endsOf } = scene()
  const { signIn } = await signIns.ask(interactiveOf('alice'), 'Orders')
  const ends = endsOf(signIn)
  expect(await begin(signIn.id)).toBe('https://idp.test/?state=state-1')
  expect(begun).toEqual([{ redirectUri: `${BASE}/connect/callback`, document: `${BASE}/client.json` }])
  expect([announced.at(-1), signIns.has('state-1')]).toEqual(['state-1', true])
  expect(await finish('state-1')).toBe(signIn)
  expect([finished, ends]).toEqual([[['state-1', 'c']], ['done']])
  expect([signIns.find(signIn.id), signIns.has(signIn.id), signIns.has('state-1')]).toEqual([undefined, false, false])
  expect([await begin(signIn.id), await finish('state-1')]).toEqual([undefined, undefined])
  expect([finished.length, ends]).toEqual([1, ['done']])
})

test('T-08 an answer in another browser is not taken, and spoils the attempt', async () => {
  for (const browser of ['another', undefined]) {
    const { signIns, finished, interactiveOf, begin, finish } = scene()
    const { signIn } = await signIns.ask(interactiveOf('alice'), 'Orders')
    await begin(signIn.id)
    const answer = new URLSearchParams({ state: 'state-1', code: 'c' })
    expect(await signIns.finish(answer, browser)).toBeUndefined()
    expect([await finish('state-1'), finished, signIns.find(signIn.id)]).toEqual([undefined, [], signIn])
    expect(await signIns.finish(new URLSearchParams(), 'this one')).toBeUndefined()
  }
})

test('only the last attempt of a sign-in counts, and others go on', async () => {
  const { signIns, interactiveOf, begin, finish } = scene()
  const [one, two] = [await signIns.ask(interactiveOf('alice'), 'A'), await signIns.ask(interactiveOf('bob'), 'A')]
  for (const { signIn } of [one, two, one]) await begin(signIn.id)
  expect(['state-1', 'state-2', 'state-3'].map((state) => signIns.has(state))).toEqual([false, true, true])
  expect([await finish('state-1'), await finish('state-3')]).toEqual([undefined, one.signIn])
  expect(signIns.has('state-2')).toBe(true)
  expect(await finish('state-2')).toBe(two.signIn)
})

test('an attempt that fails is told to those that wait, and the sign-in can be tried again', async () => {
  const { signIns, provider, interactiveOf, begin, finish, endsOf } = scene()
  const alice = interactiveOf('alice')
  const { signIn } = await signIns.ask(alice, 'Orders')
  const first = endsOf(signIn)
  provider.refuses = new Error('no')
  await expect(begin(signIn.id)).rejects.toThrow('no')
  expect([first, endsOf(signIn)]).toEqual([['failed'], ['failed']])
  await signIns.ask(alice, 'Orders')
  const second = endsOf(signIn)
  provider.refuses = undefined
  await begin(signIn.id)
  provider.refuses = new Error('no')
  await expect(finish('state-1')).rejects.toThrow('no')
  expect([first, second, signIns.find(signIn.id)]).toEqual([['failed'], ['failed'], signIn])
  provider.refuses = undefined
  await signIns.ask(alice, 'Orders')
  const third = endsOf(signIn)
  await begin(signIn.id)
  await finish('state-2')
  expect(third).toEqual(['done'])
})

test('a sign-in lasts ten minutes, and then begins anew', async () => {
  const { signIns, time, interactiveOf, begin, finish, endsOf } = scene()
  const alice = interactiveOf('alice')
  const { signIn } = await signIns.ask(alice, 'Orders')
  const ends = endsOf(signIn)
  await begin(signIn.id)
  time.nowMs = 10 * 60_000 - 1
  expect([signIns.find(signIn.id), (await signIns.ask(alice, 'Orders')).signIn, ends]).toEqual([signIn, signIn, []])
  time.nowMs = 10 * 60_000
  expect([await finish('state-1'), ends]).toEqual([undefined, ['expired']])
  expect([signIns.find(signIn.id), await begin(signIn.id)]).toEqual([undefined, undefined])
  expect((await signIns.ask(alice, 'Orders')).signIn.id).not.toBe(signIn.id)
})

test('sign-ins that have expired are removed by the next one, with their attempts', async () => {
  const { signIns, time, interactiveOf, begin, endsOf } = scene()
  const [one, two] = [await signIns.ask(interactiveOf('a'), 'A'), await signIns.ask(interactiveOf('b'), 'A')]
  await begin(one.signIn.id)
  const ends = [one, two].map(({ signIn }) => endsOf(signIn))
  time.nowMs = 1
  const { signIn } = await signIns.ask(interactiveOf('c'), 'A')
  time.nowMs = SIGN_IN_TTL_MS
  await signIns.ask(interactiveOf('d'), 'A')
  expect(ends).toEqual([['expired'], ['expired']])
  expect([one.signIn.id, 'state-1', two.signIn.id, signIn.id].map((name) => signIns.has(name))).toEqual([
    false,
    false,
    false,
    true,
  ])
})

test('a sign-in that ends while its provider is asked begins nothing', async () => {
  const { signIns, time, provider, interactiveOf, begin } = scene()
  const { signIn } = await signIns.ask(interactiveOf('alice'), 'Orders')
  provider.meanwhile = () => (time.nowMs = SIGN_IN_TTL_MS)
  expect(await begin(signIn.id)).toBeUndefined()
  expect(signIns.has('state-1')).toBe(false)
})

test('among 10,000 sign-ins the oldest gives way', async () => {
  const { signIns, interactiveOf, endsOf } = scene()
  const { signIn } = await signIns.ask(interactiveOf('0'), 'A')
  const ends = endsOf(signIn)
  for (let at = 1; at < 10_000; at++) await signIns.ask(interactiveOf(String(at)), 'A')
  expect(signIns.find(signIn.id)).toBe(signIn)
  await signIns.ask(interactiveOf('last'), 'A')
  expect([signIns.find(signIn.id), ends]).toEqual([undefined, ['expired']])
})

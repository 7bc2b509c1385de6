/** Which server a name can belong to that no list contains, judged by its form (BRIDGING 7.2; B279). */
import { expect, test } from 'vitest'
import type { Downstream } from '../../../src/downstream/downstream.ts'
import { LateNames } from '../../../src/gateway/names/late-names.ts'
import type { Call } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

interface Server {
  readonly hasLists?: boolean
  readonly alias?: Readonly<Record<string, string>>
  readonly prefix?: string
}

/** Servers by key, whose prefixes are their keys; what is waited for. */
const among = (servers: Readonly<Record<string, Server>>, prefix = 'always') => {
  const waited: string[] = []
  const downstreams = Object.entries(servers).map(([key, { hasLists = false, alias = {} }]) => {
    const of = (principal: string | undefined) => ({
      options: { key, prefix: key, alias },
      offers: { hasLists },
      principal,
      listed: async () => void waited.push(key),
    })
    return { ...of(undefined), for: of } as unknown as Downstream
  })
  const names = new LateNames({
    feed: {
      reaches: ({ server }: { server: string | undefined }, { key }: { key: string }) => server === undefined || server === key,
      viewOf: () => ({ catalog: { naming: { prefix } } }),
    } as never,
    downstreams: () => downstreams,
    known: async ({ principal }) => void waited.push(`lists for ${principal}`),
  })
  const found = (owner: ReturnType<LateNames['ownerOf']>) => owner && [owner.downstream.options.key, owner.original]
  return { names, waited, ownerOf: (call: Call) => found(names.ownerOf(call)), byForm: (call: Call) => found(names.byForm(call)) }
}
const tool = (target: string | undefined, server?: string): Call => callOf({ target, caller: { scope: { server } } })
const resource = (target: string): Call => callOf({ method: 'resources/read', target })
const completion = (ref: object | undefined): Call =>
  callOf({ method: 'completion/complete', target: undefined, params: Payload.of({ ...(ref !== undefined && { ref }) }) })

test.each<[string, Call, readonly string[] | undefined]>([
  ['a tool with the prefix of a server', tool('a__x'), ['a', 'x']],
  ['a tool with two separators', tool('a__x__y'), ['a', 'x__y']],
  ['a tool without a name after its prefix', tool('a__'), undefined],
  ['a tool with another prefix', tool('c__x'), undefined],
  ['a tool without a prefix', tool('x'), undefined],
  ['a call without a name', tool(undefined), undefined],
  ['an alias', tool('short'), ['b', 'a_long_name']],
  ['a resource', resource('a+file:///x'), ['a', 'file:///x']],
  ['a resource of a page', resource('ui://~b/x'), ['b', 'ui://x']],
  ['a resource without a prefix', resource('file:///x'), undefined],
  ['a prompt to be completed', completion({ type: 'ref/prompt', name: 'a__p' }), ['a', 'p']],
  ['a template to be completed', completion({ type: 'ref/resource', uri: 'b+file:///{x}' }), ['b', 'file:///{x}']],
  ['a template with a name beside it', completion({ type: 'ref/resource', uri: 'b+x:{y}', name: 'a__p' }), ['b', 'x:{y}']],
  ['a prompt with a URI beside it', completion({ type: 'ref/prompt', uri: 'b+x:{y}', name: 'a__p' }), ['a', 'p']],
  ['nothing to be completed', completion(undefined), undefined],
])('%s can be of one server, or of none', (_, call, owner) => {
  const { ownerOf, byForm } = among({ a: {}, b: { alias: { a_long_name: 'short' } } })
  expect([ownerOf(call), byForm(call)]).toEqual([owner, owner])
})

test('a name that can be of several servers is of none', () => {
  const { ownerOf, byForm } = among({ a: {}, b: {} }, 'never')
  expect([ownerOf(tool('x')), byForm(tool('x'))]).toEqual([undefined, undefined])
  expect(among({ a: {}, b: { alias: { y: 'a__x' } } }).byForm(tool('a__x'))).toBeUndefined()
})

test('only servers without lists can have it later, and only those that the caller reaches', () => {
  const { ownerOf, byForm } = among({ a: { hasLists: true }, b: {} }, 'never')
  expect([ownerOf(tool('x')), byForm(tool('x'))]).toEqual([['b', 'x'], undefined])
  expect([ownerOf(tool('x', 'a')), byForm(tool('x', 'a'))]).toEqual([undefined, ['a', 'x']])
})

test('at the endpoint of one server names have no prefix', () => {
  const { byForm } = among({ a: {}, b: {} })
  expect([byForm(tool('x', 'b')), byForm(tool('a__x', 'b'))]).toEqual([
    ['b', 'x'],
    ['b', 'a__x'],
  ])
})

test('a call waits for the server that its name can belong to, or else for all lists', async () => {
  const { names, waited } = among({ a: {}, b: {} })
  for (const target of ['b__x', 'x']) await names.known(tool(target))
  expect(waited).toEqual(['b', 'lists for local'])
})

/** Which part of the catalog a path and a credential select (DECISIONS 5; T-03). */
import { expect, test } from 'vitest'
import type { Identity } from '../../../src/auth/identity.ts'
import type { Toolsets } from '../../../src/catalog/view/toolsets.ts'
import { Scopes } from '../../../src/gateway/lists/scopes.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import type { EndpointPath, Scope } from '../../../src/rpc/call.ts'

const scopesOf = (asked: readonly string[] = []): Scopes =>
  new Scopes({ has: (name: string) => name === 'dev' || name === 'ops' } as unknown as Toolsets, asked)
const who = (facts: Partial<Identity> = {}): Identity => ({ principal: 'p', toolsets: undefined, scopes: undefined, ...facts })
const path = (facts: Partial<EndpointPath> = {}): EndpointPath => ({ server: undefined, toolset: undefined, ...facts })

test.each<[string, Partial<Identity>, Partial<EndpointPath>, Scope | undefined]>([
  ['anybody at /mcp', {}, {}, { server: undefined }],
  ['anybody at a toolset', {}, { toolset: 'dev' }, { server: undefined, toolset: 'dev' }],
  ['anybody at a toolset that does not exist', {}, { toolset: 'x' }, undefined],
  ['anybody at a server', {}, { server: 'a' }, { server: 'a' }],
  ['anybody at a toolset of a server', {}, { server: 'a', toolset: 'dev' }, undefined],
  ['one with toolsets at /mcp', { toolsets: ['ops', 'dev'] }, {}, { server: undefined, toolset: 'ops' }],
  ['one with toolsets at one of them', { toolsets: ['ops', 'dev'] }, { toolset: 'dev' }, { server: undefined, toolset: 'dev' }],
  ['one with toolsets at another', { toolsets: ['ops'] }, { toolset: 'dev' }, undefined],
  ['one with toolsets at a server', { toolsets: ['ops', 'dev'] }, { server: 'a' }, { server: 'a', toolset: 'ops dev' }],
  ['one with no toolset at all', { toolsets: [] }, {}, undefined],
  ['one whose toolset does not exist any more', { toolsets: ['x', 'dev'] }, {}, undefined],
])('T-03 %s gets its part of the catalog, or has no endpoint there', (_, identity, at, scope) => {
  expect(scopesOf().of(who(identity), path(at))).toEqual(scope)
})

test('scopes of a token limit the catalog only where the gateway asks for scopes of servers', () => {
  const token = who({ scopes: ['mcp:b', 'mcp:a:write', 'openid'] })
  expect(scopesOf(['mcp:connect', 'openid']).of(token, path())).toBe(EVERYTHING)
  const scopes = scopesOf(['mcp:connect', 'mcp:a', 'mcp:a:write'])
  expect(scopes.of(token, path())).toEqual({ server: undefined, granted: 'mcp:a:write' })
  expect(scopes.of(who({ scopes: [] }), path())).toEqual({ server: undefined, granted: '' })
  // A static token has no scopes, and is not limited by them.
  expect(scopes.of(who(), path())).toBe(EVERYTHING)
})

test('equal parts are one object, and different parts are not', () => {
  const scopes = scopesOf(['mcp:a'])
  const all = [path({ server: 'a' }), path({ server: 'b' }), path({ toolset: 'dev' }), path({ toolset: 'ops' }), path()].flatMap(
    (at) => [[], ['mcp:a'], undefined].map((granted) => () => scopes.of(who({ scopes: granted }), at)),
  )
  for (const make of all) expect(make()).toBe(make())
  expect(new Set(all.map((make) => make())).size).toBe(all.length)
})

test('the merged endpoint is a bridge to its only server', () => {
  const scopes = scopesOf()
  const scope = scopes.of(who(), path({ toolset: 'dev' })) ?? EVERYTHING
  const merged = scopes.merged(scope, 'a')
  expect(merged).toEqual({ server: 'a', toolset: 'dev', isMerged: true })
  expect(scopes.merged(scope, 'a')).toBe(merged)
  expect(scopes.merged(scope, 'b')).toEqual({ server: 'b', toolset: 'dev', isMerged: true })
})

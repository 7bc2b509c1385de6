/** Which servers a token reaches by its scopes, and whether it may change anything there (BRIDGING 6.1). */
import { expect, test } from 'vitest'
import { Grants, limitingScopes } from '../../../src/catalog/view/grants.ts'

test.each<[asked: string, granted: string, reads: boolean, writes: boolean]>([
  ['', '', true, true],
  ['mcp:b mcp:b:write', 'mcp:b', true, true],
  ['mcp:a mcp:a:write', '', false, false],
  ['mcp:a mcp:a:write', 'mcp:b:write', false, false],
  ['mcp:a mcp:a:write', 'mcp:a', true, false],
  ['mcp:a mcp:a:write', 'mcp:a:write', true, true],
  ['mcp:a', '', false, false],
  ['mcp:a', 'mcp:a', true, true],
  ['mcp:a:write', '', true, false],
  ['mcp:a:write', 'mcp:a:write', true, true],
])('B236 with the scopes "%s" configured and "%s" granted: reads %s, writes %s', (asked, granted, reads, writes) => {
  const grants = new Grants(granted, new Set(asked.split(' ').filter(Boolean)))
  expect([grants.reads('a'), grants.writes('a')]).toEqual([reads, writes])
})

test('B236 B238 scopes of no server limit nothing, and only configured ones are asked for', () => {
  expect(limitingScopes(['mcp:a'], new Set(['openid', 'mcp:connect']))).toBeUndefined()
  expect(limitingScopes(['openid', 'mcp:b', 'mcp:a:write'], new Set(['mcp:connect', 'mcp:a']))).toBe('mcp:a:write')
  expect(limitingScopes([], new Set(['mcp:a']))).toBe('')
  const grants = new Grants('', new Set(['mcp:a', 'mcp:b', 'mcp:b:write']))
  expect([grants.needed('a', true), grants.needed('b', true), grants.needed('b', false), grants.needed('c', true)]).toEqual([
    ['mcp:a'],
    ['mcp:b', 'mcp:b:write'],
    ['mcp:b'],
    [],
  ])
})

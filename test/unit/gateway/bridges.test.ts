/** Which requests at a bridge its server answers itself (BRIDGING 3.21). */
import { describe, expect, test } from 'vitest'
import type { View } from '../../../src/catalog/view/view.ts'
import type { Downstream } from '../../../src/downstream/downstream.ts'
import {
  isRelayedUnchanged,
  isListedDirectly,
  isTranslated,
  isWatchedDirectly,
  mayBeUnlisted,
} from '../../../src/gateway/bridges.ts'
import type { Caller, HostSession } from '../../../src/rpc/call.ts'

const SESSION = {} as HostSession
const viewOf = (facts: object = {}): View => ({ toolset: undefined, showsUri: () => true, ...facts }) as unknown as View
const VIEW = viewOf()
const callerOf = (facts: Partial<Caller> = {}): Caller => ({
  principal: 'local',
  scope: { server: 'a' },
  session: SESSION,
  revision: '2025-11-25',
  capabilities: {},
  ...facts,
})
interface Facts {
  readonly era?: string | undefined
  readonly link?: object | undefined
  readonly options?: object
  readonly leftOut?: readonly object[]
  readonly hasOwnLink?: boolean
}
const serverOf = ({ era = 'legacy', options = {}, leftOut, hasOwnLink = true, ...facts }: Facts = {}): Downstream =>
  ({
    link: 'link' in facts ? facts.link : {},
    options: {
      curation: undefined,
      alias: {},
      onChange: 'allow',
      hidden: 'warn',
      decorateTitles: false,
      sharing: 'isolated',
      ...options,
    },
    eras: { eraFor: () => era },
    inventory$: { value: leftOut && { leftOut } },
    sessions: { hasOwnLinkFor: () => hasOwnLink },
  }) as unknown as Downstream

/** What a rule of the configuration applies to. */
const RULED: readonly (readonly [string, Facts, Partial<Caller>, View])[] = [
  ['a filter', { options: { curation: {} } }, {}, VIEW],
  ['an alias', { options: { alias: { x: 'y' } } }, {}, VIEW],
  ['a hold on changes', { options: { onChange: 'hold' } }, {}, VIEW],
  ['hidden text that is removed', { options: { hidden: 'strip' } }, {}, VIEW],
  ['a toolset', {}, {}, viewOf({ toolset: {} })],
  ['scopes of the token', {}, { scope: { server: 'a', granted: '' } }, VIEW],
]

describe('lists', () => {
  test('are those of the server where host and link are of one era, and nothing would be changed', () => {
    expect(isListedDirectly(serverOf(), VIEW, callerOf())).toBe(true)
    expect(isListedDirectly(serverOf({ options: { onChange: 'warn' } }), VIEW, callerOf())).toBe(true)
    expect(isListedDirectly(serverOf({ era: 'modern' }), VIEW, callerOf({ session: undefined }))).toBe(true)
  })

  test.each<readonly [string, Facts, Partial<Caller>, View]>([
    ...RULED,
    ['the merged endpoint', {}, { scope: { server: undefined } }, VIEW],
    ['a server without a link', { link: undefined }, {}, VIEW],
    ['a modern link and a session', { era: 'modern' }, {}, VIEW],
    ['a legacy link and a modern host', {}, { session: undefined }, VIEW],
    ['titles that name the server', { options: { decorateTitles: true } }, {}, VIEW],
  ])('are not with %s', (_, facts, caller, view) => {
    expect(isListedDirectly(serverOf(facts), view, callerOf(caller))).toBe(false)
  })
})

describe('a name that is not listed', () => {
  const call = { method: 'tools/call', target: 'x', caller: callerOf() }

  test('may be of the server, unless it was refused', () => {
    expect(mayBeUnlisted(call, serverOf(), VIEW)).toBe(true)
    expect(mayBeUnlisted(call, serverOf({ leftOut: [{ name: 'x' }, { name: 'y', isRefused: true }] }), VIEW)).toBe(true)
    expect(mayBeUnlisted(call, serverOf({ leftOut: [{ name: 'x', isRefused: true }] }), VIEW)).toBe(false)
  })

  test('may be a URI that the view shows', () => {
    const shown: unknown[] = []
    const view = viewOf({ showsUri: (_options: unknown, uri: string) => (shown.push(uri), false) })
    expect(mayBeUnlisted({ ...call, method: 'resources/read' }, serverOf(), view)).toBe(false)
    expect([mayBeUnlisted(call, serverOf(), view), shown]).toEqual([true, ['x']])
    expect(mayBeUnlisted({ ...call, method: 'resources/read' }, serverOf(), VIEW)).toBe(true)
  })

  test.each(RULED)('may not be with %s', (_, facts, caller, view) => {
    expect(mayBeUnlisted({ ...call, caller: callerOf(caller) }, serverOf(facts), view)).toBe(false)
  })
})

describe('subscriptions', () => {
  test('of a session with a link of its own are those of the server', () => {
    expect(isWatchedDirectly(serverOf(), VIEW, callerOf())).toBe(true)
  })

  test.each<readonly [string, Facts, Partial<Caller>, View]>([
    ...RULED,
    ['the merged endpoint', {}, { scope: { server: undefined } }, VIEW],
    ['a modern host', { era: 'modern' }, { session: undefined }, VIEW],
    ['a modern link', { era: 'modern' }, {}, VIEW],
    ['a link that is shared', { hasOwnLink: false }, {}, VIEW],
  ])('are not with %s', (_, facts, caller, view) => {
    expect(isWatchedDirectly(serverOf(facts), view, callerOf(caller))).toBe(false)
  })
})

test.each<[string, Facts, Partial<Caller>, boolean, boolean]>([
  ['a session at a legacy link', {}, {}, false, true],
  ['a modern host at a modern link', { era: 'modern' }, { session: undefined }, false, true],
  ['a session at a modern link', { era: 'modern' }, {}, true, false],
  ['a modern host at a legacy link', {}, { session: undefined }, true, false],
  ['a session at the merged endpoint', {}, { scope: { server: undefined } }, false, false],
  ['a session of somebody, at a link of its own', {}, { principal: 'ann' }, false, true],
  ['a session of somebody, at a shared link', { options: { sharing: 'shared' } }, { principal: 'ann' }, false, false],
  ['a session of anybody, at a shared link', { options: { sharing: 'shared' } }, {}, false, true],
  ['a modern host of somebody', { era: 'modern' }, { principal: 'ann', session: undefined }, false, false],
])('B277 %s is translated, or relayed unchanged, or neither', (_, facts, caller, translated, unchanged) => {
  expect([isTranslated(callerOf(caller), serverOf(facts)), isRelayedUnchanged(callerOf(caller), serverOf(facts))]).toEqual([
    translated,
    unchanged,
  ])
})

/** How the state of one server changes, and what follows the end of its main link: pure, so that every case is a row (F-04, F-08, B289). */
import { describe, expect, test } from 'vitest'
import type { Link } from '../../../src/era/server/link.ts'
import { STARTING } from '../../../src/downstream/health/health.ts'
import { ownerOf } from '../../../src/downstream/link-owner.ts'
import type { LinkOwner } from '../../../src/downstream/link-owner.ts'
import {
  initialState,
  isWaitingUseless,
  reduce,
  refusalOf,
  ServerStates,
  stepAfter,
} from '../../../src/downstream/health/server-state.ts'
import type { LinkEnd, ServerEvent, ServerState } from '../../../src/downstream/health/server-state.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

// The reducer compares links and never uses them.
const LINK = {} as Link
const OTHER = {} as Link
const EXITED = new Failure('exited', 'exited with code 1')
const UNREACHABLE = new Failure('unreachable', 'connection refused')
const SIGN_IN = new Failure('auth_required', 'needs sign-in', { signIn: true })
const SPAWN = new Failure('spawn_failed', 'spawn x: ENOENT')
const OWNER: LinkOwner = ownerOf({
  key: 'shared',
  isolation: 'shared',
  principal: 'p',
  declared: {},
  clientInfo: undefined,
  revision: undefined,
})
const OF_SESSION: LinkOwner = { ...OWNER, isolation: 'session' }

const after = (...events: readonly ServerEvent[]): ServerState => events.reduce(reduce, initialState())

const up = (nowMs: number, complaints: readonly string[] = []): readonly ServerEvent[] => [
  { type: 'dialing' },
  { type: 'opened', link: LINK },
  { type: 'ready', nowMs, complaints },
]
const lost = (changes: Partial<Extract<ServerEvent, { type: 'lost' }>> = {}): ServerEvent => ({
  type: 'lost',
  failure: EXITED,
  nowMs: 2_000,
  waitMs: 500,
  notBeforeMs: 2_100,
  graceMs: 5_000,
  ...changes,
})

describe('the record after events', () => {
  test.each<[name: string, events: readonly ServerEvent[], expected: Partial<ServerState>]>([
    [
      'a link that is being read is not used',
      [{ type: 'dialing' }, { type: 'opened', link: LINK }],
      { link: undefined, opened: LINK, activity: 'dialing' },
    ],
    ['a link that was read is used', up(1_000), { link: LINK, activity: 'up', upSinceMs: 1_000, hasBeenUp: true }],
    [
      'lists that are read again tell of problems, and of none',
      [...up(1_000, ['old']), { type: 'listed', complaints: [] }],
      { health: { state: 'healthy', reason: undefined, failure: undefined, failures: 0, nextTryAtMs: undefined } },
    ],
    [
      'lists that are read while there is no link change no health',
      [{ type: 'dialing' }, { type: 'listed', complaints: ['x'] }],
      { health: STARTING },
    ],
    [
      'a link that is given up is not used',
      [...up(1_000), { type: 'given-up', link: LINK }],
      { link: undefined, activity: 'retiring', upSinceMs: 1_000 },
    ],
    [
      'another link that is given up changes nothing',
      [...up(1_000), { type: 'given-up', link: OTHER, refusal: EXITED }],
      { link: LINK, refusal: undefined },
    ],
    [
      'the reason for giving a link up is kept',
      [...up(1_000), { type: 'given-up', link: LINK, refusal: SIGN_IN }],
      { refusal: SIGN_IN },
    ],
    [
      'the reason is dropped with the next attempt',
      [...up(1_000), { type: 'given-up', link: LINK, refusal: SIGN_IN }, { type: 'ended', nowMs: 2_000 }, { type: 'dialing' }],
      { refusal: undefined },
    ],
    [
      'the end of a link is the last health',
      [...up(1_000), { type: 'ended', nowMs: 2_000 }],
      { link: undefined, opened: undefined, activity: 'idle', lastUpMs: 2_000, upSinceMs: undefined },
    ],
    [
      'the end of an attempt is no health',
      [{ type: 'dialing' }, { type: 'ended', nowMs: 2_000 }],
      { lastUpMs: -Infinity, activity: 'idle' },
    ],
    ['a missing sign-in is logged once', [{ type: 'hopeless', failure: SIGN_IN }], { isSignInLogged: true }],
    ['after a sign-in the next one is logged', [{ type: 'hopeless', failure: SIGN_IN }, ...up(1_000)], { isSignInLogged: false }],
    ['another failure is no missing sign-in', [{ type: 'hopeless', failure: SPAWN }], { isSignInLogged: false }],
    [
      'a change announced on the shared link makes its lists those of all',
      [{ type: 'list-announced', owner: OWNER }],
      { announcer: OWNER },
    ],
    [
      'a change announced on a link of one session does not',
      [{ type: 'list-announced', owner: OF_SESSION }],
      { announcer: undefined },
    ],
    [
      'a change announced on the main link does not',
      [
        { type: 'list-announced', owner: OWNER },
        { type: 'list-announced', owner: undefined },
      ],
      { announcer: OWNER },
    ],
    [
      'the end of the shared link ends that',
      [
        { type: 'list-announced', owner: OWNER },
        { type: 'link-closed', owner: OWNER },
      ],
      { announcer: undefined },
    ],
    [
      'the end of another link does not',
      [
        { type: 'list-announced', owner: OWNER },
        { type: 'link-closed', owner: OF_SESSION },
      ],
      { announcer: OWNER },
    ],
    ['what is known of the era', [{ type: 'takes-initialize', takesInitialize: false }], { takesInitialize: false }],
    ['stopping is remembered', [{ type: 'stopping' }], { isStopping: true }],
  ])('%s', (_, events, expected) => {
    expect(after(...events)).toMatchObject(expected)
  })

  test.each<[name: string, events: readonly ServerEvent[], expected: Partial<ServerState['health']>]>([
    ['a server that was read is healthy', up(0), { state: 'healthy', failure: undefined }],
    ['with complaints it is degraded', up(0, ['a', 'b']), { state: 'degraded', reason: 'a; b' }],
    [
      'F-04 within the grace time after health calls wait',
      [...up(1_000), { type: 'ended', nowMs: 1_900 }, lost()],
      { state: 'starting', failures: 1, nextTryAtMs: 2_500 },
    ],
    ['F-04 without health before it is down', [lost()], { state: 'down', failures: 1, reason: EXITED.message }],
    [
      'F-04 after the grace time it is down',
      [...up(1_000), { type: 'ended', nowMs: 1_900 }, lost({ nowMs: 6_900, notBeforeMs: 7_000 })],
      { state: 'down' },
    ],
    [
      'F-04 where the next attempt is later than the grace time it is down',
      [...up(1_000), { type: 'ended', nowMs: 1_900 }, lost({ notBeforeMs: 7_001 })],
      { state: 'down' },
    ],
    [
      'F-04 where the next attempt is just within the grace time calls wait, whatever the clock says',
      [...up(1_000_000), { type: 'ended', nowMs: 1_001_900 }, lost({ nowMs: 1_002_000, notBeforeMs: 1_007_000 })],
      { state: 'starting' },
    ],
    ['failures without health in between are one outage', [lost(), { type: 'dialing' }, lost()], { failures: 1 }],
    ['failures with health in between are two', [lost(), ...up(3_000), lost()], { failures: 2 }],
    [
      'an attempt at a server that is down leaves it down',
      [lost(), { type: 'dialing' }],
      { state: 'down', nextTryAtMs: undefined },
    ],
    ['B289 a link that is opened again is no failure', [...up(0), { type: 'renewing' }], { state: 'starting', failures: 0 }],
    [
      'a server that only a person can help',
      [{ type: 'hopeless', failure: SPAWN }],
      { state: 'failed', failure: SPAWN, nextTryAtMs: undefined },
    ],
    ['a person wakes a server that is down', [lost(), { type: 'woken' }], { state: 'starting', failures: 0 }],
    ['stopping', [...up(0), { type: 'stopping' }], { state: 'draining' }],
  ])('health: %s', (_, events, expected) => {
    expect(after(...events).health).toMatchObject(expected)
  })

  test('what changes nothing returns the same record', () => {
    const state = after(...up(0))
    expect(reduce(state, { type: 'woken' })).toBe(state)
    expect(reduce(state, { type: 'given-up', link: OTHER })).toBe(state)
    expect(reduce(state, { type: 'link-closed', owner: OWNER })).toBe(state)
  })
})

describe('what follows the end of an attempt or a link', () => {
  const end = (changes: Partial<LinkEnd>): LinkEnd => ({
    failure: UNREACHABLE,
    isCrash: false,
    nowMs: 10_000,
    graceMs: 5_000,
    minRetryMs: 2_000,
    ...changes,
  })
  test.each<[name: string, events: readonly ServerEvent[], end: LinkEnd, expected: ReturnType<typeof stepAfter>]>([
    ['an attempt that failed is made again after a wait', [{ type: 'dialing' }], end({}), 'wait'],
    ['B289 a link that lasted is opened again at once', up(8_000), end({}), 'renew'],
    ['a link that did not last is opened after a wait', up(8_001), end({}), 'wait'],
    ['F-04 a crash is followed by a wait, however long the link lasted', up(0), end({ failure: EXITED, isCrash: true }), 'wait'],
    ['F-08 a missing command is given up', [{ type: 'dialing' }], end({ failure: SPAWN }), 'give-up'],
    [
      'a program that ran a moment ago is being replaced',
      [...up(0), { type: 'ended', nowMs: 5_001 }, { type: 'dialing' }],
      end({ failure: SPAWN }),
      'wait',
    ],
    [
      'a program that ran long ago is missing',
      [...up(0), { type: 'ended', nowMs: 5_000 }, { type: 'dialing' }],
      end({ failure: SPAWN }),
      'give-up',
    ],
    ['a missing sign-in is given up, even if the link was up', up(0), end({ failure: SIGN_IN }), 'give-up'],
  ])('%s', (_, events, ended, expected) => {
    expect(stepAfter(after(...events), ended)).toBe(expected)
  })
})

describe('a call that finds no link', () => {
  test.each<[name: string, state: ServerState, nowMs: number, isUseless: boolean]>([
    ['waits for a server that is starting', after({ type: 'dialing' }), 0, false],
    ['does not wait for one that is down', after(lost()), 2_099, true],
    ['waits for one that is down and may be tried', after(lost()), 2_100, false],
    ['waits for an attempt that is under way', after(lost(), { type: 'dialing' }), 0, false],
    ['does not wait for one that only a person can help', after({ type: 'hopeless', failure: SPAWN }), 0, true],
    ['does not wait for one that is being stopped', after({ type: 'stopping' }), 0, true],
  ])('%s', (_, state, nowMs, isUseless) => {
    expect(isWaitingUseless(state, nowMs)).toBe(isUseless)
  })

  test.each<[name: string, state: ServerState, expected: Partial<Failure>]>([
    [
      'starting',
      after({ type: 'dialing' }),
      { kind: 'starting', message: 'still starting: no answer yet', executed: 'no', retryable: true },
    ],
    [
      'starting again within the grace time, with the reason of the loss',
      after(...up(1_000), { type: 'ended', nowMs: 2_000 }, lost()),
      { kind: 'starting', message: 'still starting: exited with code 1', executed: 'no' },
    ],
    [
      'down, with the time of the next attempt',
      after(lost()),
      { kind: 'exited', executed: 'no', facts: expect.objectContaining({ state: 'down', retryAfterMs: 300 }) },
    ],
    [
      'failed',
      after({ type: 'hopeless', failure: SIGN_IN }),
      { kind: 'auth_required', facts: expect.objectContaining({ state: 'failed', signIn: true }) },
    ],
    ['stopped', after({ type: 'stopping' }), { kind: 'shutting_down', executed: 'no' }],
  ])('is refused: %s', (_, state, expected) => {
    expect(refusalOf(state, 2_200)).toMatchObject(expected)
  })
})

test('health$ follows the state, and emits only what changed', () => {
  const states = new ServerStates(initialState())
  const seen: string[] = []
  states.health$.subscribe(({ state }) => seen.push(state))
  for (const event of up(0)) states.send(event)
  states.send({ type: 'takes-initialize', takesInitialize: true })
  states.send({ type: 'stopping' })
  expect(seen).toEqual(['starting', 'starting', 'healthy', 'draining'])
})

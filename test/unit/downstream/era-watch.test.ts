/** When a server is asked whether it speaks another era than before (BRIDGING 5.2; B268). */
import { expect, test } from 'vitest'
import { EraWatch } from '../../../src/downstream/health/era-watch.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { ServerError } from '../../../src/rpc/call.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { Era } from '../../../src/wire/protocol/revisions.ts'

const REFUSED: Readonly<Record<Era, ServerError>> = {
  legacy: new ServerError(-32022, 'no', Payload.of({})),
  modern: new ServerError(-32000, 'no session', Payload.of({})),
}
/** Longer than the gap between two questions about one link. */
const LATER_MS = 10_000
const GAP_MS = 2_000

const linkOf = (era: Era): Link => ({ era, transport: 'http' }) as Link

/** A server at a URL that answers each question as the list says: its era, or nothing that tells. */
const watchOver = (...answers: (Era | undefined)[]) => {
  const scene = { link: linkOf('legacy'), nowMs: 1_000_000, asked: 0, changes: 0 }
  const watch = new EraWatch({
    link: () => scene.link,
    probe: async () => answers[scene.asked++],
    changed: ({ era }) => {
      scene.changes++
      scene.link = linkOf(era === 'legacy' ? 'modern' : 'legacy')
    },
    nowMs: () => scene.nowMs,
  })
  const meet = (): Promise<boolean> => watch.isChange(REFUSED[scene.link.era], scene.link)
  /** Sweeps once, and lets what was asked be answered. */
  const sweep = async (): Promise<void> => {
    watch.sweep(scene.nowMs)
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  return { scene, meet, sweep }
}

test('B268 a server that changes back at once is noticed both times', async () => {
  const { scene, meet } = watchOver('modern', 'legacy')
  expect(await meet()).toBe(true)
  expect(await meet()).toBe(true)
  expect(scene.changes).toBe(2)
})

test('B268 a question that was asked in vain is asked again by the next error', async () => {
  const { scene, meet } = watchOver(undefined, 'modern')
  expect(await meet()).toBe(false)
  expect(await meet()).toBe(true)
  expect(scene.changes).toBe(1)
})

test('B268 an error that is asked about in vain is asked about once more later, without another error', async () => {
  const { scene, meet, sweep } = watchOver(undefined, undefined, 'modern')
  expect(await meet()).toBe(false)
  await sweep()
  expect(scene.asked).toBe(1)
  scene.nowMs += LATER_MS
  await sweep()
  expect(scene.asked).toBe(2)
  scene.nowMs += LATER_MS
  await sweep()
  expect(scene.asked).toBe(2)
})

test('B268 errors of a link that come in bursts ask once, and once more when the burst is over', async () => {
  const { scene, meet, sweep } = watchOver('legacy', 'modern')
  expect(await meet()).toBe(false)
  expect(await meet()).toBe(false)
  expect(await meet()).toBe(false)
  await sweep()
  expect(scene.asked).toBe(1)
  scene.nowMs += LATER_MS
  await sweep()
  expect(scene.asked).toBe(2)
  expect(scene.changes).toBe(1)
})

test('B268 two seconds after a question the next error asks at once, and what is due is asked', async () => {
  const one = watchOver('legacy', 'modern')
  expect(await one.meet()).toBe(false)
  one.scene.nowMs += GAP_MS
  expect(await one.meet()).toBe(true)
  const other = watchOver('legacy', 'modern')
  await other.meet()
  await other.meet()
  other.scene.nowMs += GAP_MS
  await other.sweep()
  expect([other.scene.asked, other.scene.changes]).toEqual([2, 1])
})

test('B268 without an error nothing is asked, whether a link is up or not', async () => {
  const { scene, sweep } = watchOver('modern')
  await sweep()
  let asked = 0
  const watch = new EraWatch({
    link: () => undefined,
    probe: async () => (asked++, 'modern'),
    changed: () => undefined,
    nowMs: () => LATER_MS,
  })
  watch.sweep(LATER_MS)
  expect([scene.asked, asked]).toEqual([0, 0])
})

test('B268 an error is not asked about later where its link was replaced meanwhile', async () => {
  const { scene, meet, sweep } = watchOver(undefined)
  expect(await meet()).toBe(false)
  scene.link = linkOf('legacy')
  scene.nowMs += LATER_MS
  await sweep()
  expect(scene.asked).toBe(1)
})

/** All links to the legacy side of a modern server; the same object each time it is there. */
test('B268 a side that goes, comes back and goes again at once is noticed both times, and meanwhile without asking', async () => {
  const side = { era: 'legacy', transport: 'http' } as const
  const answers: Era[] = ['legacy', 'modern', 'modern']
  const scene = { isThere: true, asked: 0, nowMs: 0 }
  const watch = new EraWatch({
    link: () => (scene.isThere ? side : undefined),
    probe: async () => answers[scene.asked++],
    changed: () => (scene.isThere = false),
    nowMs: () => scene.nowMs,
  })
  const meet = (): Promise<boolean> => watch.isChange(REFUSED.legacy, side)
  expect(await meet()).toBe(false)
  scene.nowMs += LATER_MS
  expect(await meet()).toBe(true)
  expect(await meet()).toBe(true)
  expect(scene.asked).toBe(2)
  scene.isThere = true
  expect(await meet()).toBe(true)
  expect(scene.asked).toBe(3)
})

const serverError = (code: number, message = 'no'): ServerError => new ServerError(code, message, Payload.of({}))

test.each<[string, Era, unknown, isAsked: boolean]>([
  ['an error of another era (-32020)', 'legacy', serverError(-32020), true],
  ['an error of another era (-32021)', 'legacy', serverError(-32021), true],
  ['an error of another era (-32022)', 'legacy', serverError(-32022), true],
  ['an unknown method', 'legacy', serverError(-32601), false],
  ['a lost session', 'legacy', serverError(-32000, 'no session'), false],
  ['any other error', 'legacy', serverError(-32602, 'no session'), false],
  ['an error of a server without the session (-32600)', 'modern', serverError(-32600), true],
  ['an error of a server without the session (-32000)', 'modern', serverError(-32000), true],
  ['an unknown method', 'modern', serverError(-32601), true],
  ['a text that asks for initialize', 'modern', serverError(-1, 'Server not initialized'), true],
  ['a text that asks for a session', 'modern', serverError(-1, 'unknown session'), true],
  ['a missing capability', 'modern', serverError(-32021), false],
  ['any other error', 'modern', serverError(-32602, 'no such tool'), false],
  ['a path that is gone', 'modern', new Failure('not_found', '404', { executed: 'no' }), true],
  ['an answer that is none', 'modern', new Failure('bad_response', 'HTML', { executed: 'no' }), true],
  ['an answer that is none to a call that may have run', 'modern', new Failure('bad_response', 'HTML'), false],
  ['a failure of the network', 'modern', new Failure('unreachable', 'refused', { executed: 'no' }), false],
  ['a defect', 'modern', new TypeError('session'), false],
])('B268 whether %s over a %s link makes the server be asked', async (_, era, error, isAsked) => {
  const link = linkOf(era)
  let asked = 0
  const watch = new EraWatch({
    link: () => link,
    probe: async () => (asked++, era === 'legacy' ? 'modern' : 'legacy'),
    changed: () => undefined,
    nowMs: () => 0,
  })
  expect([await watch.isChange(error, link), asked]).toEqual([isAsked, isAsked ? 1 : 0])
})

test('B268 a pipe has the era of its process, and a call without a link says nothing', async () => {
  const pipe = { era: 'legacy', transport: 'pipe' } as const
  let asked = 0
  const watch = new EraWatch({
    link: () => pipe,
    probe: async () => (asked++, 'modern'),
    changed: () => undefined,
    nowMs: () => 0,
  })
  expect(await watch.isChange(REFUSED.legacy, pipe)).toBe(false)
  expect(await watch.isChange(REFUSED.legacy, undefined)).toBe(false)
  expect(asked).toBe(0)
})

/** When a server is asked whether it speaks another era than before (BRIDGING 5.2; B268). */
import { expect, test } from 'vitest'
import { EraWatch } from '../../../src/downstream/health/era-watch.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { ServerError } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { Era } from '../../../src/wire/protocol/revisions.ts'

const REFUSED: Readonly<Record<Era, ServerError>> = {
  legacy: new ServerError(-32022, 'no', Payload.of({})),
  modern: new ServerError(-32000, 'no session', Payload.of({})),
}
/** Longer than the gap between two questions about one link. */
const LATER_MS = 10_000

const linkOf = (era: Era): Link => ({ era, transport: 'http' }) as Link

/** A server at a URL that answers each question as the list says: its era, or nothing that tells. */
const watchOver = (...answers: (Era | undefined)[]) => {
  const scene = { link: linkOf('legacy'), nowMs: 0, asked: 0, changes: 0 }
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

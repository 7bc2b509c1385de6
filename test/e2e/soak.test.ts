/** The short form of `npm run soak`: every transport and era on both sides, hosts that come and vanish, everybody using the id 1. */
import { expect, test } from 'vitest'
import { openArena } from '../support/arena/arena.ts'
import { runCrowd, seeded } from '../support/arena/crowd.ts'
import { takeSample } from '../support/arena/tally.ts'
import { isAlive } from '../support/pids.ts'

test('of thousands of calls with the id 1 none is lost, crossed or doubled, and no process is left', async () => {
  await using arena = await openArena({ perKind: 1, isFaulty: false })
  await runCrowd(arena, {
    hosts: 12,
    lanes: 3,
    random: seeded(1),
    callsPerSession: 300,
    isOver: () => arena.referee.calls >= 2_000,
  })
  await arena.referee.settled(30_000)
  expect(arena.referee.findings).toEqual([])
  expect(arena.referee.verdict).toMatchObject({ lost: 0, crossed: 0, doubled: 0, untrue: 0, broken: 0, failed: {} })
  expect((await takeSample(arena)).children).toBeGreaterThan(0)
  const children = arena.children()
  expect(await arena.stop()).toBe(0)
  expect(children.filter(isAlive)).toEqual([])
})

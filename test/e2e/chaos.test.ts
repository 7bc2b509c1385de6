/** The short form of `npm run chaos`: faults of every kind, one upon the other, while hosts that all use the id 1 go on calling. */
import { expect, test } from 'vitest'
import { runChaos } from '../support/arena/chaos.ts'
import { isAlive } from '../support/pids.ts'

test('through thirty random faults no call is lost, crossed or doubled; afterwards every server answers, and none is left behind', async () => {
  await using end = await runChaos({ faults: 30, seed: 7, hosts: 6, perKind: 1 })
  const { arena, unwell } = end
  expect(arena.referee.findings).toEqual([])
  expect(arena.referee.verdict).toMatchObject({ lost: 0, crossed: 0, doubled: 0, untrue: 0 })
  expect(unwell).toEqual([])
  const children = arena.children()
  expect(await arena.stop()).toBe(0)
  expect(children.filter(isAlive)).toEqual([])
})

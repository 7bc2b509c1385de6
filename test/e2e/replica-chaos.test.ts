/** The short form of `npm run chaos:replicas`: replicas are killed, the store is paused, replicas are cut off, while hosts go on calling. */
import { expect, test } from 'vitest'
import { describeWith } from '../support/programs.ts'
import { KNOWN_ERRORS, runReplicaChaos } from '../support/replica-chaos.ts'

describeWith(['redis-server'], 'three replicas without stickiness', () => {
  test('no answer reaches another caller, no call runs twice, and every error is one of the closed list or a broken connection', async () => {
    const end = await runReplicaChaos({
      seconds: 6,
      killEveryMs: 2_500,
      pauses: 1,
      pauseMs: 600,
      cuts: 1,
      cutMs: 1_500,
      hosts: 3,
      thinkMs: 20,
    })
    expect(end).toMatchObject({ crossed: 0, doubled: 0 })
    expect(end.kills).toBeGreaterThan(0)
    expect(end.calls).toBeGreaterThan(50)
    expect([...end.errors.keys()].filter((what) => !KNOWN_ERRORS.has(what))).toEqual([])
  })
})

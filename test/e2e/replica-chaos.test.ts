/** The short form of `npm run chaos:replicas`: replicas are killed, the store is paused, replicas are cut off, while hosts go on calling. */
import { expect, test } from 'vitest'
import { describeWith } from '../support/programs.ts'
import { runReplicaChaos } from '../support/replica-chaos.ts'

describeWith(['redis-server'], 'three replicas without stickiness', () => {
  test('no answer reaches another caller, no call runs twice, and every error is one of the closed list or a broken connection', async () => {
    const end = await runReplicaChaos({ seconds: 5, killEveryMs: 2_000, pauseMs: 600, hosts: 3 })
    expect(end).toMatchObject({ crossed: 0, doubled: 0 })
    expect(end.kills).toBeGreaterThan(0)
    expect(end.calls).toBeGreaterThan(50)
    // 502: the balancer's own, of a connection that a killed replica broke.
    const known = [
      'connection',
      '502',
      '503',
      'lost',
      'store_unavailable',
      'unreachable',
      'shutting_down',
      'overloaded',
      'starting',
    ]
    expect([...end.errors.keys()].filter((what) => !known.includes(what))).toEqual([])
  })
})

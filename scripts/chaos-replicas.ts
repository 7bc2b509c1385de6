/**
 * `npm run chaos:replicas -- --seconds N [--kill-every S] [--pause S] [--hosts N]`: three replicas behind a balancer without stickiness and
 * a real redis-server. One replica is killed every 20 s, the store is paused, replicas are cut off from each other. Ends with 1 where an
 * answer was crossed, a call ran twice, one took longer than 35 s, or 1 % of the calls failed.
 */
import { parseArgs } from 'node:util'
import { runReplicaChaos } from '../test/support/replica-chaos.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    'kill-every': { type: 'string', default: '20' },
    pause: { type: 'string', default: '10' },
    hosts: { type: 'string', default: '12' },
  },
})
const end = await runReplicaChaos({
  seconds: Number(values.seconds),
  killEveryMs: Number(values['kill-every']) * 1_000,
  pauseMs: Number(values.pause) * 1_000,
  hosts: Number(values.hosts),
  onEvent: (text) => console.log(text),
})
const { calls, crossed, doubled, longestMs, sessionsLost, kills } = end
const failed = [...end.errors.values()].reduce((sum, count) => sum + count, 0)
console.log(`${calls} calls, ${kills} kills, ${sessionsLost} sessions begun again, longest ${(longestMs / 1_000).toFixed(1)} s`)
console.log(`crossed ${crossed}, executed twice ${doubled}, failed ${failed} (${((failed / calls) * 100).toFixed(2)} %)`)
for (const [what, count] of [...end.errors].sort()) console.log(`${count} × ${what}`)
process.exitCode = crossed + doubled === 0 && longestMs < 35_000 && failed < calls / 100 ? 0 : 1

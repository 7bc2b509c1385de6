/** The crowd of `npm run crowd`, smaller and for a few seconds. */
import { expect, test } from 'vitest'
import { seeded } from '../support/arena/crowd.ts'
import { runCrowd } from '../support/crowd/crowd.ts'

test('B048 B131 hosts that are asked and told things all at once hear what is theirs, and nothing is left', async () => {
  const { turns, findings, left } = await runCrowd({ hosts: 40, servers: 10, forMs: 3_000, parkTtlMs: 8_000, random: seeded(1) })
  expect(findings).toEqual([])
  expect(left).toEqual({ parked: 0, inFlight: 0, watched: 0, links: 0 })
  expect(Object.keys(turns)).toEqual(expect.arrayContaining(['converse', 'watch']))
}, 60_000)

/**
 * Registers every scenario of the bridge page in some rows: an official client and an official server are connected directly, then
 * through a bridge, and whatever both their users see must be equal, but for what the page says (B277).
 */
import { describe, expect, test } from 'vitest'
import { isPlayed, play } from '../support/bridged/play.ts'
import type { Row } from '../support/bridged/rows.ts'
import { SCENARIOS } from '../support/bridged/scenarios.ts'

export const bridgeSuite = (rows: readonly Row[]): void => {
  describe.each(rows)('B277 $key', (row) => {
    test.concurrent.each(SCENARIOS.filter((scenario) => isPlayed(scenario, row)))('$name', async (scenario) => {
      const { direct, bridged } = await play(scenario, row)
      expect(direct).not.toHaveProperty('not ended')
      expect(direct).not.toHaveProperty('thrown')
      expect(bridged).toEqual(direct)
    })
  })
}

/** Plays scenarios twice and says what differs. */
import type { Row } from './rows.ts'
import type { Scenario } from './scenario.ts'
import { directly, through } from './wires.ts'
import type { Scene, Setup } from './wires.ts'

export interface Played {
  readonly direct: unknown
  readonly bridged: unknown
}

/** A bound for what hangs, far beyond what a busy machine needs. */
const LIMIT_MS = 60_000

/** What was seen directly and through the bridge; without what is known to differ. */
export const play = async (scenario: Scenario, row: Row): Promise<Played> => {
  const without = (scenario.differs ?? []).filter(({ on }) => on(row)).map((difference) => difference.without)
  const seen = async (open: (row: Row, setup: Setup) => Promise<Scene>): Promise<unknown> => {
    await using scene = await open(row, scenario)
    const played = await within(scenario.play(scene), scene)
    return without.reduce((left, take) => take(left), played)
  }
  const [direct, bridged] = await Promise.all([seen(directly), seen(through)])
  return { direct, bridged }
}

/** A scenario that waits for what never comes shows what came. */
const within = async (playing: Promise<unknown>, { client, notes }: Scene): Promise<unknown> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<unknown>((resolve) => {
    timer = setTimeout(() => resolve({ 'not ended': { notices: client.notices.entries, notes: notes.entries } }), LIMIT_MS)
  })
  try {
    return await Promise.race([playing.catch((error: unknown) => ({ thrown: String(error) })), late])
  } finally {
    clearTimeout(timer)
  }
}

export const isPlayed = ({ on }: Scenario, row: Row): boolean => on?.(row) !== false

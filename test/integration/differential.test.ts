/**
 * Random conversations through a gateway, in every pair of host and server, at the merged endpoint and at bridges, judged by a small
 * model of what may differ; where both have one transport, between host and server themselves as well.
 * `npm run differential` says as many as are asked for and keeps what it finds in the corpus that is said again here.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Setting } from '../support/differential/catalog.ts'
import type { Conversation } from '../support/differential/conversation.ts'
import { explore, sayOnce } from '../support/differential/explore.ts'
import { everyPair } from '../support/differential/run.ts'

const CORPUS = new URL('../corpus/differential.json', import.meta.url)
const kept = JSON.parse(readFileSync(CORPUS, 'utf8')) as readonly {
  pair: string
  setting: Setting
  conversation: Conversation
}[]
const PER_PAIR = 40
const SEED = 20260728
/** How long conversations are begun, and how long a finding is shrunk: a slow machine says fewer, and comes to no limit of the test. */
const SAYING_MS = 90_000
const SHRINK_MS = 30_000

/** Side by side: a conversation mostly waits for timers and processes. */
describe.concurrent('B016 B017 B018 B269 B272 B277 what one side writes reaches the other as it was written', () => {
  test.each(everyPair)('$name', { timeout: 240_000 }, async (pair) => {
    for (const { setting, conversation } of kept.filter(({ pair: name }) => name === pair.name))
      expect(await sayOnce(pair, setting, conversation)).toEqual([])
    let said = 0
    const finding = await explore(pair, SEED, 0, {
      numRuns: PER_PAIR,
      withinMs: SAYING_MS,
      shrinkMs: SHRINK_MS,
      onSaid: () => said++,
      onFound: (text) => console.error(text),
    })
    if (finding === undefined && said < PER_PAIR) console.warn(`${pair.name}: ${said} of ${PER_PAIR} conversations were said`)
    expect(finding).toBeUndefined()
  })
})

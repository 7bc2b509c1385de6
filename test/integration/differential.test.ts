/**
 * Random conversations through a gateway, in every pair of host, revision and server, judged by a small model of what may differ.
 * `npm run differential` says as many as are asked for and keeps what it finds in the corpus that is said again here.
 */
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conversations } from '../support/differential/conversation.ts'
import type { Conversation } from '../support/differential/conversation.ts'
import { everyPair, Stage } from '../support/differential/run.ts'

const CORPUS = new URL('../corpus/differential.json', import.meta.url)
const kept = JSON.parse(readFileSync(CORPUS, 'utf8')) as readonly { pair: string; conversation: Conversation }[]
const PER_PAIR = 40

describe('B016 B017 B018 B269 B272 what one side writes reaches the other as it was written', () => {
  test.each(everyPair)('$name', { timeout: 120_000 }, async (pair) => {
    await using stage = await Stage.open(pair)
    for (const { conversation } of kept.filter(({ pair: name }) => name === pair.name))
      expect(await stage.say(conversation)).toEqual([])
    const said = fc.asyncProperty(conversations, async (conversation) => {
      expect(await stage.say(conversation)).toEqual([])
    })
    await fc.assert(said, { seed: 20260728, numRuns: PER_PAIR, endOnFailure: true })
  })
})

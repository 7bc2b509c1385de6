/** One round of a pair: a random setting, and so many random conversations in it. What is found is shrunk, and found again alone. */
import * as fc from 'fast-check'
import { PLAIN_SETTING, settingsFor } from './catalog.ts'
import type { Setting } from './catalog.ts'
import { conversations } from './conversation.ts'
import type { Conversation } from './conversation.ts'
import { endpointsOf, Stage } from './run.ts'
import type { Pair } from './run.ts'

/** Conversations in one setting. */
export const ROUND = 40

export interface Finding {
  readonly pair: string
  readonly setting: Setting
  readonly conversation: Conversation
  readonly text: string
}

/** Says one round; `onSaid` is told of every conversation. */
export const explore = async (
  pair: Pair,
  seed: number,
  round: number,
  onSaid: (conversation: Conversation) => void = () => undefined,
  numRuns = ROUND,
): Promise<Finding | undefined> => {
  const own = seedOf(`${seed} ${round} ${pair.name}`)
  const [setting = PLAIN_SETTING] = fc.sample(settingsFor(pair.revisions, endpointsOf(pair)), { seed: own, numRuns: 1 })
  await using stage = await Stage.open(pair, setting)
  const property = fc.asyncProperty(conversations, async (conversation) => {
    onSaid(conversation)
    const found = await stage.say(conversation)
    if (found.length > 0) throw new Error(found.join('\n'))
  })
  const outcome = await fc.check(property, { seed: own, numRuns, interruptAfterTimeLimit: 600_000 })
  if (!outcome.failed || outcome.counterexample === null) return undefined
  const [conversation] = outcome.counterexample
  const text = outcome.errorInstance instanceof Error ? outcome.errorInstance.message : String(outcome.errorInstance)
  const plain = setting.hosts.map((host) => ({ ...PLAIN_SETTING, hosts: [host] }))
  for (const simpler of [...plain, setting]) {
    const found = await sayOnce(pair, simpler, conversation)
    if (found.length > 0) return { pair: pair.name, setting: simpler, conversation, text: found.join('\n') }
  }
  return { pair: pair.name, setting, conversation, text: `${text}\n(not found again in a gateway of its own)` }
}

/** One conversation with a gateway of its own. */
export const sayOnce = async (pair: Pair, setting: Setting, conversation: Conversation): Promise<string[]> => {
  await using stage = await Stage.open(pair, setting)
  // Awaited here: the stage ends with this function.
  return await stage.say(conversation)
}

const seedOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193)
  return hash | 0
}

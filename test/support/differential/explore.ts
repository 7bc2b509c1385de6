/**
 * One round of a pair: a random setting, and so many random conversations in it. What is found is shrunk, and found again alone; where it
 * needs conversations before it, with as few of them as that takes.
 */
import * as fc from 'fast-check'
import { PLAIN_SETTING, settingsFor } from './catalog.ts'
import type { Setting } from './catalog.ts'
import { conversations } from './conversation.ts'
import type { Conversation } from './conversation.ts'
import { endpointsOf, Stage } from './run.ts'
import type { Pair } from './run.ts'

/** Conversations in one setting. */
export const ROUND = 40
/** How long is searched for the conversations that a finding needs. */
const SERIES_MS = 60_000

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
  /** All until the first finding. */
  const series: Conversation[] = []
  let isFound = false
  const property = fc.asyncProperty(conversations, async (conversation) => {
    onSaid(conversation)
    if (!isFound) series.push(conversation)
    const found = await stage.say(conversation)
    if (found.length === 0) return
    isFound = true
    throw new Error(found.join('\n'))
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
  const needed = await shrinkSeries(pair, setting, series)
  if (needed !== undefined) return { pair: pair.name, setting, ...needed }
  return { pair: pair.name, setting, conversation, text: `${text}\n(not found again in a gateway of its own)` }
}

/** As few of the conversations as it takes for the last one to be a finding; `undefined`: it is none, for all of them. */
const shrinkSeries = async (
  pair: Pair,
  setting: Setting,
  all: readonly Conversation[],
): Promise<Pick<Finding, 'conversation' | 'text'> | undefined> => {
  const until = performance.now() + SERIES_MS
  let series = all
  let text: string | undefined
  const isFinding = async (some: readonly Conversation[]): Promise<boolean> => {
    const found = await sayOnce(pair, setting, joined(some))
    if (found.length > 0) text = found.join('\n')
    return found.length > 0
  }
  if (!(await isFinding(series))) return undefined
  for (let size = Math.ceil(series.length / 2); size >= 1 && performance.now() < until; size = Math.floor(size / 2))
    for (let at = 0; at < series.length - 1 && performance.now() < until;) {
      const fewer = series.toSpliced(at, Math.min(size, series.length - 1 - at))
      if (await isFinding(fewer)) series = fewer
      else at += size
    }
  return { conversation: joined(series), text: text ?? '' }
}

/** One conversation of many. */
const joined = (series: readonly Conversation[]): Conversation => ({
  steps: series.flatMap(({ steps }, at) => (at === 0 ? steps : [{ kind: 'next conversation' }, ...steps])),
})

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

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
/** How long a finding is shrunk, and how long is searched for the conversations that it needs. */
const SHRINK_MS = 60_000

export interface Finding {
  readonly pair: string
  readonly setting: Setting
  readonly conversation: Conversation
  readonly text: string
}

export interface Exploring {
  /** How many conversations. */
  readonly numRuns?: number
  /** How long new ones are begun. */
  readonly withinMs?: number
  readonly shrinkMs?: number
  /** Every conversation, before it is said. */
  readonly onSaid?: (conversation: Conversation) => void
  /** What is found, with everything that says it again, as it was found: whatever becomes of it when it is shrunk. */
  readonly onFound?: (text: string) => void
}

/** Says one round. */
export const explore = async (
  pair: Pair,
  seed: number,
  round: number,
  { numRuns = ROUND, withinMs = Infinity, shrinkMs = SHRINK_MS, onSaid, onFound }: Exploring = {},
): Promise<Finding | undefined> => {
  const place = `${pair.name}, seed ${seed}, round ${round}`
  const own = seedOf(`${seed} ${round} ${pair.name}`)
  const [setting = PLAIN_SETTING] = fc.sample(settingsFor(pair.revisions, endpointsOf(pair)), { seed: own, numRuns: 1 })
  await using stage = await Stage.open(pair, setting).catch((error: unknown) => {
    throw new Error(`${place}: ${String(error)}`, { cause: error })
  })
  const series: Conversation[] = []
  const lastMs = performance.now() + withinMs
  const saying = fc.asyncProperty(conversations, async (conversation) => {
    if (performance.now() > lastMs) return
    onSaid?.(conversation)
    series.push(conversation)
    failAt(await stage.say(conversation))
  })
  const first = await fc.check(saying, { seed: own, numRuns, endOnFailure: true })
  if (!first.failed || first.counterexample === null) return undefined
  const [whole] = first.counterexample
  const found = { pair: pair.name, setting, conversation: whole }
  onFound?.(`${place}, conversation ${series.length}:\n${textOf(first)}\n${JSON.stringify(found)}`)

  const endMs = performance.now() + shrinkMs
  const repeating = fc.asyncProperty(conversations, async (conversation) => {
    // What is not said is no finding: shrinking ends.
    if (performance.now() < endMs) failAt(await stage.say(conversation, endMs))
  })
  // What is not found again is not shrunk.
  const shrunk = await fc.check(repeating, { seed: own, path: first.counterexamplePath ?? '', numRuns: 1 })
  const conversation = shrunk.counterexample?.[0] ?? whole
  const plain = setting.hosts.map((host) => ({ ...PLAIN_SETTING, hosts: [host] }))
  for (const simpler of [...plain, setting]) {
    const again = await sayOnce(pair, simpler, conversation, endMs)
    if (again.length > 0) return { pair: pair.name, setting: simpler, conversation, text: again.join('\n') }
  }
  const needed = await shrinkSeries(pair, setting, series, endMs)
  if (needed !== undefined) return { pair: pair.name, setting, ...needed }
  const reason = shrunk.failed ? 'not found again in a gateway of its own' : 'not found again'
  return { pair: pair.name, setting, conversation, text: `${textOf(shrunk.failed ? shrunk : first)}\n(${reason})` }
}

const failAt = (found: readonly string[]): void => {
  if (found.length > 0) throw new Error(found.join('\n'))
}

const textOf = ({ errorInstance }: fc.RunDetails<[Conversation]>): string =>
  errorInstance instanceof Error ? errorInstance.message : String(errorInstance)

/** As few of the conversations as it takes for the last one to be a finding; `undefined`: it is none, for all that could be said until `endMs`. */
const shrinkSeries = async (
  pair: Pair,
  setting: Setting,
  all: readonly Conversation[],
  endMs: number,
): Promise<Pick<Finding, 'conversation' | 'text'> | undefined> => {
  let series = all
  let text: string | undefined
  const isFinding = async (some: readonly Conversation[]): Promise<boolean> => {
    const found = await sayOnce(pair, setting, joined(some), endMs)
    if (found.length > 0) text = found.join('\n')
    return found.length > 0
  }
  if (!(await isFinding(series))) return undefined
  for (let size = Math.ceil(series.length / 2); size >= 1 && performance.now() < endMs; size = Math.floor(size / 2))
    for (let at = 0; at < series.length - 1 && performance.now() < endMs;) {
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

/** One conversation with a gateway of its own, as much of it as can be begun before `endMs`. */
export const sayOnce = async (pair: Pair, setting: Setting, conversation: Conversation, endMs = Infinity): Promise<string[]> => {
  if (performance.now() > endMs) return []
  await using stage = await Stage.open(pair, setting)
  // Awaited here: the stage ends with this function.
  return await stage.say(conversation, endMs)
}

const seedOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193)
  return hash | 0
}

/**
 * Random conversations between random hosts and servers, through a gateway, judged against a small model of what may differ:
 * `npm run differential -- --conversations N` for each pair of host, revision and server; `--pair WORD` takes the pairs whose name
 * holds the word, `--seed S` repeats a run. A finding is shrunk, printed and kept in `test/corpus/differential.json`, where the tests
 * say it again from then on. Exits with 1 if there was any.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import * as fc from 'fast-check'
import { conversations } from '../test/support/differential/conversation.ts'
import type { Conversation } from '../test/support/differential/conversation.ts'
import { countsOf } from '../test/support/differential/judge.ts'
import { everyPair, Stage } from '../test/support/differential/run.ts'

const { values } = parseArgs({
  options: {
    conversations: { type: 'string', default: '1000' },
    pair: { type: 'string', default: '' },
    seed: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed ?? Date.now() % 2 ** 31)
const numRuns = Number(values.conversations)
const CORPUS = new URL('../test/corpus/differential.json', import.meta.url)

const keep = (pair: string, conversation: Conversation): void => {
  const kept = JSON.parse(readFileSync(CORPUS, 'utf8')) as { pair: string; conversation: Conversation }[]
  kept.push({ pair, conversation })
  writeFileSync(CORPUS, `${JSON.stringify(kept, undefined, 1)}\n`)
}

let findings = 0
let said = 0
const totals: Record<string, number> = {}
for (const pair of everyPair.filter(({ name }) => name.includes(values.pair))) {
  await using stage = await Stage.open(pair)
  const property = fc.asyncProperty(conversations, async (conversation) => {
    said++
    for (const [name, count] of Object.entries(countsOf(conversation))) totals[name] = (totals[name] ?? 0) + count
    const found = await stage.say(conversation)
    if (found.length > 0) throw new Error(found.join('\n'))
  })
  const outcome = await fc.check(property, { seed, numRuns, interruptAfterTimeLimit: 3_600_000 })
  if (!outcome.failed || outcome.counterexample === null) {
    console.log(`${pair.name}: ${outcome.numRuns} conversations, nothing found`)
    continue
  }
  findings++
  const [conversation] = outcome.counterexample
  console.log(`${pair.name}: seed ${seed}\n${String(outcome.errorInstance)}\n${JSON.stringify(conversation)}\n`)
  if (values.keep) keep(pair.name, conversation)
}
console.log(`${said} conversations, seed ${seed}, ${findings} pairs with a finding`)
console.log(
  Object.entries(totals)
    .map(([name, count]) => `${name} ${count}`)
    .join(', '),
)
process.exitCode = findings > 0 ? 1 : 0

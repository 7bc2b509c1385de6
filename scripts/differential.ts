/**
 * Random conversations between random hosts and servers, through a gateway, judged against a small model of what may differ
 * (docs/differential.md): `npm run differential -- --conversations N` for each pair of host, revision and server.
 *
 * - `--pair WORD`: pairs whose name holds the word. `--parallel N`: pairs at the same time
 * - `--seed S --from R`: repeats a run, or goes on with it, from its round R; a round is one setting for each pair
 * - `--keep`: keeps findings in `test/corpus/differential.json`, where the tests say them again
 * - `--tally FILE`: adds what was said to the counts in a file, after each round
 * - `--help`: prints this
 *
 * A finding is shrunk and printed, and its pair goes on with the next round. Exits with 1 if there was any.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { countsOf } from '../test/support/differential/conversation.ts'
import { explore, ROUND } from '../test/support/differential/explore.ts'
import type { Finding } from '../test/support/differential/explore.ts'
import { everyPair } from '../test/support/differential/run.ts'

const { values } = parseArgs({
  options: {
    conversations: { type: 'string', default: '1000' },
    pair: { type: 'string', default: '' },
    seed: { type: 'string' },
    from: { type: 'string', default: '0' },
    parallel: { type: 'string', default: '4' },
    keep: { type: 'boolean', default: false },
    tally: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  const [comment = ''] = /(?<=\/\*\*\n)[^]*?(?=\n \*\/)/.exec(readFileSync(import.meta.filename, 'utf8')) ?? []
  console.log(comment.replaceAll(/^ \* ?/gm, ''))
  process.exit(0)
}
const seed = Number(values.seed ?? Date.now() % 2 ** 31)
const rounds = Math.ceil(Number(values.conversations) / ROUND)
const CORPUS = new URL('../test/corpus/differential.json', import.meta.url)

type Tally = Record<'pairs' | 'said', Record<string, number>>
const tally: Tally =
  values.tally !== undefined && existsSync(values.tally)
    ? (JSON.parse(readFileSync(values.tally, 'utf8')) as Tally)
    : { pairs: {}, said: {} }
const add = (counts: Record<string, number>, name: string, count: number): void =>
  void (counts[name] = (counts[name] ?? 0) + count)

const keep = (finding: Finding): void => {
  const kept = JSON.parse(readFileSync(CORPUS, 'utf8')) as object[]
  kept.push({ pair: finding.pair, setting: finding.setting, conversation: finding.conversation })
  writeFileSync(CORPUS, `${JSON.stringify(kept, undefined, 1)}\n`)
}

const began = performance.now()
let said = 0
let findings = 0
const pairs = everyPair.filter(({ name }) => name.includes(values.pair))
for (let round = Number(values.from); round < rounds; round++) {
  const waiting = [...pairs]
  const worker = async (): Promise<void> => {
    for (let pair = waiting.shift(); pair !== undefined; pair = waiting.shift()) {
      const { name } = pair
      const finding = await explore(pair, seed, round, {
        onSaid: (conversation) => {
          said++
          add(tally.pairs, name, 1)
          for (const [what, count] of Object.entries(countsOf(conversation))) add(tally.said, what, count)
        },
        onFound: (text) => console.log(`found, and not shrunk yet: ${text}\n`),
      })
      if (finding === undefined) continue
      findings++
      console.log(`${name}: seed ${seed}, round ${round}\n${finding.text}`)
      console.log(`${JSON.stringify({ pair: name, setting: finding.setting, conversation: finding.conversation })}\n`)
      if (values.keep) keep(finding)
    }
  }
  await Promise.all(Array.from({ length: Number(values.parallel) }, worker))
  if (values.tally !== undefined) writeFileSync(values.tally, `${JSON.stringify(tally, undefined, 1)}\n`)
  const rate = Math.round(said / ((performance.now() - began) / 1_000))
  console.log(
    `round ${round} of ${rounds}: ${said} conversations, ${rate}/s, ${findings} findings (--seed ${seed} --from ${round + 1})`,
  )
}
for (const counts of [tally.pairs, tally.said])
  console.log(
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(', '),
  )
process.exitCode = findings > 0 ? 1 : 0

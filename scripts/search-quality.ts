/**
 * How well the search of `discovery: search` finds tools (docs/discovery.md): `node scripts/search-quality.ts` asks the questions of
 * test/corpus/tool-queries.json of the definitions in test/corpus/tools and prints recall, rank and what was missed.
 */
import { listCorpus, measure, readCorpus, readQuestions } from '../test/support/tool-corpus.ts'
import type { Quality } from '../test/support/tool-corpus.ts'

const corpus = readCorpus()
const list = listCorpus(corpus)
const { tuned, held } = readQuestions()

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
const row = (name: string, { questions, recallAt, meanReciprocalRank }: Quality): string =>
  `| ${[name, questions, percent(recallAt[1]), percent(recallAt[3]), percent(recallAt[5]), percent(recallAt[10]), meanReciprocalRank.toFixed(3)].join(' | ')} |`

const results = { tuned: measure(list, tuned), held: measure(list, held), all: measure(list, [...tuned, ...held]) }
console.log(`${list.rows.length} tools of ${corpus.length} servers\n`)
console.log(
  '| questions | number | recall@1 | recall@3 | recall@5 | recall@10 | MRR |\n| --- | --- | --- | --- | --- | --- | --- |',
)
for (const [name, quality] of Object.entries(results)) console.log(row(name, quality))

// Misses of the held questions are counted and never shown: whoever reads them has begun to tune for them.
console.log(`\nnot among the first five, of the tuned questions (${results.tuned.misses.length}):`)
for (const { question, found } of results.tuned.misses)
  console.log(`  ${question.query}\n    expected ${question.tools.join(', ')}\n    found    ${found.join(', ')}`)

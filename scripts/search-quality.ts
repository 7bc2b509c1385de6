/**
 * The quality of the search of `discovery` (docs/discovery.md): `node scripts/search-quality.ts` runs the questions of
 * test/corpus/tool-queries.json on the definitions in test/corpus/tools and prints recall, rank and misses.
 */
import { listCorpus, measure, qualityRows, readCorpus, readQuestions } from '../test/support/tool-corpus.ts'

const corpus = readCorpus()
const list = listCorpus(corpus)
const { tuned, held } = readQuestions()

console.log(`${list.rows.length} tools of ${corpus.length} servers\n`)
console.log(
  '| questions | number | recall@1 | recall@3 | recall@5 | recall@10 | MRR |\n| --- | --- | --- | --- | --- | --- | --- |',
)
const results = { tuned: measure(list, tuned), held: measure(list, held), all: measure(list, [...tuned, ...held]) }
console.log(qualityRows(results).join('\n'))

// With `--held` also the misses of the others: whoever reads them has begun to tune for them, and should hold new ones back.
const shown = process.argv.includes('--held') ? (['tuned', 'held'] as const) : (['tuned'] as const)
for (const name of shown) {
  const { misses } = results[name]
  console.log(`\nnot among the first five, of ${name} (${misses.length}):`)
  for (const { question, found } of misses)
    console.log(`  ${question.query}\n    expected ${question.tools.join(', ')}\n    found    ${found.join(', ')}`)
}

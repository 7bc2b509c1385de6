/** How well tools are found, on definitions of published servers (docs/discovery.md has the figures). */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { listCorpus, measure, qualityRows, readCorpus, readQuestions } from '../../support/tool-corpus.ts'

const corpus = readCorpus()
const list = listCorpus(corpus)
const { tuned, held } = readQuestions()
const all = [...tuned, ...held]

describe('the corpus', () => {
  test('holds at least 500 definitions of published versions under open licences', () => {
    expect(list.rows.length).toBeGreaterThanOrEqual(500)
    expect(corpus.filter((server) => !/@\d+\.\d+\.\d+$/.test(server.package))).toEqual([])
    expect(corpus.map(({ licence }) => licence).filter((licence) => !['MIT', 'Apache-2.0', 'ISC'].includes(licence))).toEqual([])
  })

  test('is asked at least 100 questions, each once, whose answers are in it; a third of them held back', () => {
    expect(all.length).toBeGreaterThanOrEqual(100)
    expect(new Set(all.map(({ query }) => query)).size).toBe(all.length)
    expect(held.length).toBeGreaterThanOrEqual(Math.floor(all.length / 3))
    const names = new Set(list.rows.map(({ exposed }) => exposed))
    expect(all.flatMap(({ tools }) => tools).filter((name) => !names.has(name))).toEqual([])
  })
})

describe('what is found', () => {
  const results = { tuned: measure(list, tuned), held: measure(list, held), all: measure(list, all) }

  test('recall at 5 is 0.9 or more', () => {
    for (const { recallAt } of Object.values(results)) expect(recallAt[5]).toBeGreaterThanOrEqual(0.9)
  })

  test('the page has the figures', () => {
    const page = readFileSync(new URL('../../../docs/discovery.md', import.meta.url), 'utf8')
    expect(page.split('\n').filter((line) => /^\| (tuned|held|all) /.test(line))).toEqual(qualityRows(results))
    expect(page).toContain(`${list.rows.length} definitions of ${corpus.length} published servers`)
    expect(page).toContain(`with ${all.length} questions`)
    const packages = corpus.map(({ package: name, licence, tools }) => `| ${name} | ${licence} | ${tools.length} |`)
    expect(page.split('\n')).toEqual(expect.arrayContaining(packages))
  })
})

/**
 * The corpus of tool definitions and the questions asked of it (`test/corpus/tools`, `test/corpus/tool-queries.json`), and how
 * often a search answers them. The definitions are those of published servers, as they list them without an account; `outputSchema`
 * and `_meta` are left out.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { buildCatalog } from '../../src/catalog/build-catalog.ts'
import type { CatalogSource } from '../../src/catalog/catalog.ts'
import type { Freshness } from '../../src/catalog/inventory.ts'
import { ToolSearch } from '../../src/catalog/search/search.ts'
import { Views } from '../../src/catalog/view/view.ts'
import type { ReadyList } from '../../src/catalog/view/view.ts'
import { MODERN } from '../../src/wire/protocol/revisions.ts'

/** The tools of one published server. */
export interface ServerCorpus {
  readonly server: string
  /** `name@version` on npm. */
  readonly package: string
  readonly licence: string
  readonly tools: readonly { readonly name: string }[]
}

/** A question, and the exposed names that answer it: one of them is enough. */
export interface Question {
  readonly query: string
  readonly tools: readonly string[]
}

export interface Quality {
  readonly questions: number
  /** Share of the questions with an answer among the first so many. */
  readonly recallAt: Readonly<Record<1 | 3 | 5 | 10, number>>
  /** Mean of 1 / place of the first answer; 0 beyond the tenth. */
  readonly meanReciprocalRank: number
  /** Those without an answer among the first five, with what was found in its place. */
  readonly misses: readonly { readonly question: Question; readonly found: readonly string[] }[]
}

const FOLDER = new URL('../corpus/', import.meta.url)
const DEPTH = 10

export const readCorpus = (): ServerCorpus[] =>
  readdirSync(new URL('tools/', FOLDER))
    .sort()
    .map((file) => JSON.parse(readFileSync(new URL(`tools/${file}`, FOLDER), 'utf8')) as ServerCorpus)

/** `tuned`: those that words and weights were chosen with; `held`: written afterwards, and asked once. */
export const readQuestions = (): { readonly tuned: Question[]; readonly held: Question[] } =>
  JSON.parse(readFileSync(new URL('tool-queries.json', FOLDER), 'utf8')) as { tuned: Question[]; held: Question[] }

/** The whole corpus as one gateway lists it, each server under its key. */
export const listCorpus = (corpus: readonly ServerCorpus[]): ReadyList =>
  new Views().of(buildCatalog(corpus.map(sourceOf), { prefix: 'always', maxNameLength: 64 }), { revision: MODERN }).list('tools')

export const measure = (list: ReadyList, questions: readonly Question[]): Quality => {
  const search = new ToolSearch()
  const ranked = questions.map((question) => {
    const found = search.find(list, question.query, DEPTH).map(({ at }) => list.rows[at]!.exposed)
    const place = found.findIndex((name) => question.tools.includes(name))
    return { question, found, place: place === -1 ? Infinity : place + 1 }
  })
  const share = (places: number): number => ranked.filter(({ place }) => place <= places).length / questions.length
  return {
    questions: questions.length,
    recallAt: { 1: share(1), 3: share(3), 5: share(5), 10: share(10) },
    meanReciprocalRank: ranked.reduce((sum, { place }) => sum + 1 / place, 0) / questions.length,
    misses: ranked.filter(({ place }) => place > 5).map(({ question, found }) => ({ question, found: found.slice(0, 5) })),
  }
}

/** One row of a table for each set of questions: number, recall at 1, 3, 5 and 10, mean reciprocal rank. */
export const qualityRows = (results: Readonly<Record<string, Quality>>): string[] =>
  Object.entries(results).map(([name, { questions, recallAt, meanReciprocalRank }]) => {
    const shares = Object.values(recallAt).map((share) => `${(share * 100).toFixed(1)} %`)
    return `| ${[name, questions, ...shares, meanReciprocalRank.toFixed(3)].join(' | ')} |`
  })

const FRESH: Freshness = { receivedAtMs: 0, ttlMs: 60_000, scope: 'public' }

const sourceOf = ({ server, tools }: ServerCorpus): CatalogSource => ({
  server: {
    key: server,
    prefix: server,
    displayName: server,
    alias: {},
    uris: 'namespaced',
    unaliasArguments: true,
    decorateTitles: false,
    instructions: true,
    apps: true,
    trusted: undefined,
    tags: [],
    curation: undefined,
  },
  inventory: {
    revision: MODERN,
    capabilities: { tools: {} },
    instructions: undefined,
    lists: {
      tools: tools.map((tool) => ({ original: tool.name, raw: Buffer.from(JSON.stringify(tool)), paramHeaders: [] })),
      resources: [],
      templates: [],
      prompts: [],
    },
    freshness: { tools: FRESH, resources: FRESH, templates: FRESH, prompts: FRESH },
    leftOut: [],
    findings: [],
    warnings: [],
    digest: '',
  },
})

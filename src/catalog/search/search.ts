/**
 * Full-text search over tools: BM25 over names, descriptions and arguments. An index follows one view from catalog to catalog;
 * only tools that were added, removed or changed are indexed again.
 */
import MiniSearch from 'minisearch'
import type { CatalogServer, Exposed } from '../catalog.ts'
import { isMark, questionTermsOf, termsOf } from './synonyms.ts'
import { serverText, toolText } from './tool-text.ts'
import type { ToolText } from './tool-text.ts'
import type { ReadyList } from '../view/view.ts'
import { reader } from './search-words.ts'

/** A tool that was found: its index in the list, and its score, which is comparable within one question only. */
export interface Found {
  readonly at: number
  readonly score: number
}

/** A tool in the index; texts are terms separated by blanks. */
interface Indexed extends ToolText {
  readonly id: number
}

/** Weights by field; tuned with the questions of the corpus (docs/discovery.md). */
const WEIGHTS: Readonly<Record<keyof ToolText, number>> = { name: 2, server: 2, summary: 2, details: 0.3 }
/** `k`: saturation of repeated words. `b`: preference of short texts. */
const BM25 = { k: 2, b: 0.7, d: 0 }
/** Weights of words that only begin like a word of the question, or differ from it by a typing error. */
const INEXACT = { prefix: 0.1, fuzzy: 0.2 }
/** Shorter words are a prefix of, or similar to, too many others. */
const MIN_PREFIX = 3
const MIN_FUZZY = 6
/** Longer queries are cut, so that they cannot occupy the process. */
const MAX_QUESTION = 1_000
const MAX_TERMS = 48

/** Definitions read without a pause, which takes some milliseconds. */
const SLICE = 32

type Listed = Pick<ReadyList, 'rows' | 'entries'>

interface Known {
  readonly indexed: Indexed
  readonly server: CatalogServer
}

export class ToolSearch {
  readonly #index = new MiniSearch<Indexed>({
    fields: Object.keys(WEIGHTS),
    tokenize: splitTerms,
    processTerm: (term) => term,
    autoVacuum: false,
  })
  /** By the bytes of the entry, which are the same object while the entry does not change. */
  #known = new Map<Buffer, Known>()
  /** Index in the list by id. */
  #places = new Map<number, number>()
  #list: Listed | undefined
  #reads = 0

  /** Definitions read so far. */
  get reads(): number {
    return this.#reads
  }

  /** The best `limit` tools of the list for a question, best first; equal scores in the order of the list. */
  find(list: Listed, question: string, limit: number): Found[] {
    const slices = this.follow(list)
    while (slices.next().done !== true);
    const terms = questionTermsOf(question.slice(0, MAX_QUESTION)).slice(0, MAX_TERMS)
    return this.#index
      .search(terms.join(' '), {
        boost: WEIGHTS,
        bm25: BM25,
        weights: INEXACT,
        prefix: (term) => !isMark(term) && term.length >= MIN_PREFIX,
        fuzzy: (term) => (!isMark(term) && term.length >= MIN_FUZZY ? 0.2 : false),
      })
      .map(({ id, score }): Found => ({ at: this.#places.get(Number(id)) ?? -1, score: Math.round(score * 100) / 100 }))
      .sort((a, b) => b.score - a.score || a.at - b.at)
      .slice(0, limit)
  }

  /**
   * Updates the index to a list, a slice at a time, so that other work can run in between. Must be run to its end before the next
   * update begins.
   */
  *follow(list: Listed): Generator<void> {
    if (list === this.#list) return
    const read = reader()
    const known = new Map<Buffer, Known>()
    const places = new Map<number, number>()
    for (const [at, bytes] of list.entries.entries()) {
      // Cast: there is a row for each entry.
      const row = list.rows[at]!
      const kept = this.#known.get(bytes)
      const isSame = kept !== undefined && serverText(kept.server) === serverText(row.server)
      const { indexed } = isSame ? kept : { indexed: this.#read(row, bytes, read) }
      known.set(bytes, { indexed, server: row.server })
      places.set(indexed.id, at)
      if (!isSame && this.#reads % SLICE === 0) yield
    }
    for (const [bytes, { indexed }] of this.#known) if (known.get(bytes)?.indexed !== indexed) this.#index.remove(indexed)
    this.#known = known
    this.#places = places
    this.#list = list
  }

  #read(row: Exposed, bytes: Buffer, read: (text: string) => string[]): Indexed {
    const { name, server, summary, details } = toolText(row, bytes)
    const terms = (text: string): string => termsOf(text, read).join(' ')
    const indexed = {
      id: ++this.#reads,
      name: terms(name),
      server: terms(server),
      summary: terms(summary),
      details: terms(details),
    }
    this.#index.add(indexed)
    return indexed
  }
}

const splitTerms = (terms: string): string[] => terms.split(' ').filter(Boolean)

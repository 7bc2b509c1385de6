/**
 * Tools found by the words a person or a model has for them: BM25 over names, descriptions and arguments. An index follows one view
 * from catalog to catalog; only what came, went or reads differently is indexed anew.
 */
import MiniSearch from 'minisearch'
import type { Exposed } from './catalog.ts'
import { isMark, questionTermsOf, termsOf } from './synonyms.ts'
import { serverText, toolText } from './tool-text.ts'
import type { ToolText } from './tool-text.ts'
import type { ReadyList } from './view.ts'

/** One answer: its place in the list, and how well it fits; scores of different questions do not compare. */
export interface Found {
  readonly at: number
  readonly score: number
}

interface Indexed extends ToolText {
  readonly id: number
}

/** How much a word counts where it stands; chosen with the tuned questions of the corpus (docs/discovery.md). */
const WEIGHTS: Readonly<Record<keyof ToolText, number>> = { name: 2, server: 2, summary: 2, details: 0.3 }
/** How soon more of the same word counts no more, and how much shorter texts are preferred. */
const BM25 = { k: 2, b: 0.7, d: 0 }
/** What a word counts that only begins like one of the question, or differs by a slip of the finger. */
const INEXACT = { prefix: 0.1, fuzzy: 0.2 }
/** Shorter words begin, or resemble, too many others. */
const MIN_PREFIX = 3
const MIN_FUZZY = 6
/** What is read of a question: whoever asks longer ones asks to keep us busy. */
const MAX_QUESTION = 1_000
const MAX_TERMS = 48

type Listed = Pick<ReadyList, 'rows' | 'entries'>

export class ToolSearch {
  readonly #index = new MiniSearch<Indexed>({
    fields: Object.keys(WEIGHTS),
    tokenize: termsOf,
    // `termsOf` has done it; endings are not cut twice.
    processTerm: (term) => term,
    autoVacuum: false,
  })
  /** By the bytes it was read from: an entry that did not change keeps them from one catalog to the next. */
  #known = new Map<Buffer, Indexed>()
  /** Place in the list by id. */
  readonly #places = new Map<number, number>()
  #list: Listed | undefined
  #reads = 0

  /** How many definitions were read since the beginning. */
  get reads(): number {
    return this.#reads
  }

  /** The best `limit` tools of the list for a question, best first; equally good ones in the order of the list. */
  find(list: Listed, question: string, limit: number): Found[] {
    if (list !== this.#list) this.#follow(list)
    const terms = questionTermsOf(question.slice(0, MAX_QUESTION)).slice(0, MAX_TERMS)
    return this.#index
      .search(terms.join(' '), {
        tokenize: (text) => text.split(' ').filter(Boolean),
        boost: WEIGHTS,
        bm25: BM25,
        weights: INEXACT,
        prefix: (term) => !isMark(term) && term.length >= MIN_PREFIX,
        fuzzy: (term) => (!isMark(term) && term.length >= MIN_FUZZY ? 0.2 : false),
      })
      .map(({ id, score }): Found => ({ at: this.#places.get(id as number) ?? -1, score: Math.round(score * 100) / 100 }))
      .sort((a, b) => b.score - a.score || a.at - b.at)
      .slice(0, limit)
  }

  /** Makes the index that of another list. */
  #follow(list: Listed): void {
    const known = new Map<Buffer, Indexed>()
    this.#places.clear()
    for (const [at, bytes] of list.entries.entries()) {
      const row = list.rows[at]
      const kept = this.#known.get(bytes)
      const indexed = kept?.server === serverText(row.server) ? kept : this.#read(row, bytes)
      known.set(bytes, indexed)
      this.#places.set(indexed.id, at)
    }
    for (const [bytes, indexed] of this.#known) if (known.get(bytes) !== indexed) this.#index.remove(indexed)
    this.#known = known
    this.#list = list
  }

  #read(row: Exposed, bytes: Buffer): Indexed {
    const indexed = { id: ++this.#reads, ...toolText(row, bytes) }
    this.#index.add(indexed)
    return indexed
  }
}

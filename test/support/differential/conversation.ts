/**
 * What random hosts say and a random server answers, as data: JSON text with the spelling it is sent in, so that a failing
 * conversation can be shrunk, kept in a file and said again. Which catalog and which configuration it is said to: `setting.ts`.
 */
import * as fc from 'fast-check'
import { catalog } from './catalog.ts'
import type { Catalog } from './catalog.ts'
import { inner, innerObject, meta, someString, spelling, unknown } from './json.ts'
import type { Spelling, Written } from './json.ts'

export interface ProgressNote {
  readonly value: number
  readonly more: Written
}

export type Block =
  | { readonly type: 'text' | 'audio' | 'image' | 'vendor'; readonly more: Written }
  | { readonly type: 'resource_link' | 'resource'; readonly uri: string; readonly more: Written }

/** `titled`, `several`: forms with titled options, with a choice of several. `context`: sampling with `includeContext`. */
export type QuestionKind = 'form' | 'titled' | 'several' | 'url' | 'sampling' | 'tools' | 'context' | 'roots'

/** What a server asks before it answers. */
export interface Question {
  readonly kind: QuestionKind
  readonly message: string
  readonly more: Written
  /** What the host does with a dialog. */
  readonly action: 'accept' | 'decline' | 'cancel'
  /** What the host answers with, beside what the method requires. */
  readonly answer: Written
}

export type Outcome =
  | {
      readonly kind: 'result'
      readonly blocks: readonly Block[] | undefined
      readonly structured: string | undefined
      readonly isError: boolean | undefined
      readonly more: Written
      readonly meta: Written | undefined
    }
  | { readonly kind: 'error'; readonly code: number; readonly message: string; readonly data: string | undefined }
  /** The host gives up once the server has the request. */
  | {
      readonly kind: 'cancelled'
      readonly reason: string | undefined
      readonly more: Written
      readonly meta: Written | undefined
    }
  /** The server's process, session or stream ends when it has the request; a request that is sent again is answered. */
  | { readonly kind: 'dies' }

export interface Reply {
  readonly questions: readonly Question[]
  readonly progress: readonly ProgressNote[]
  /** Levels and further members of log messages. */
  readonly logs: readonly { readonly level: string; readonly more: Written }[]
  readonly outcome: Outcome
  readonly spelling: Spelling
}

export interface Exchange {
  /** Which of the hosts; counted round. */
  readonly host: number
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read' | 'completion/complete'
  /** Which entry of the list; counted round. */
  readonly target: number
  /** The host's id, as text. */
  readonly id: string
  readonly arguments: string | undefined
  /** Members of `params` that no revision defines. */
  readonly more: Written
  readonly meta: Written | undefined
  readonly token: string | undefined
  /** `_meta…/logLevel` of modern hosts. */
  readonly level: string | undefined
  readonly spelling: Spelling
  readonly reply: Reply
}

export type Step =
  /** Sent one after the other, or all at once. */
  | { readonly kind: 'exchanges'; readonly isConcurrent: boolean; readonly exchanges: readonly Exchange[] }
  /** Every host reads all four lists, page by page. */
  | { readonly kind: 'lists' }
  /** The server offers something else, and announces the lists that differ. */
  | { readonly kind: 'offer'; readonly catalog: Catalog }
  /** Every host subscribes to a resource, the server reports a change, and they unsubscribe. */
  | { readonly kind: 'update'; readonly target: number; readonly more: Written }
  /** Legacy hosts set their level. */
  | { readonly kind: 'level'; readonly level: string }
  | { readonly kind: 'server restarts' }
  | { readonly kind: 'gateway restarts' }
  /** Another program serves the server's URL, which speaks the other era: from now on, or until every host has called once. */
  | { readonly kind: 'era changes'; readonly isBrief?: boolean }
  /** The world is put back to the setting, as between two conversations: where a finding needs those before it. */
  | { readonly kind: 'next conversation' }

export interface Conversation {
  readonly steps: readonly Step[]
}

export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const

const URIS = [
  'file:///srv/a.txt',
  'note://x',
  'ui://app/view',
  'https://example.com/a',
  'urn:isbn:1',
  'fs+file:///y',
  'relative/a.txt',
]

const block: fc.Arbitrary<Block> = fc.oneof(
  fc.record({ type: fc.constantFrom('text' as const, 'audio' as const, 'image' as const, 'vendor' as const), more: unknown(2) }),
  fc.record({
    type: fc.constantFrom('resource_link' as const, 'resource' as const),
    uri: fc.constantFrom(...URIS),
    more: unknown(2),
  }),
)

/** Every code that a table of BRIDGING 7.3 names, those around them, and some that no table names. */
const CODES = [
  -32602, -32603, -32600, -32601, -32700, -32002, -1, 0, 1, 4711, -32000, -32001, -32010, -32019, -32020, -32021, -32022, -32023,
  -32029, -32040, -32041, -32042, -32043, -32049, -32050, -32099, -31999, -32100, -32768, 2_147_483_647,
]

const question: fc.Arbitrary<Question> = fc.record({
  kind: fc.constantFrom<QuestionKind>('form', 'form', 'titled', 'several', 'url', 'sampling', 'tools', 'context', 'roots'),
  message: fc.constantFrom('"Which?"', '"caf\\u00e9 \\"x\\""', '"two\\nlines"', '"a\\/b"'),
  more: unknown(2),
  action: fc.constantFrom('accept' as const, 'accept' as const, 'decline' as const, 'cancel' as const),
  answer: unknown(2),
})

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  {
    weight: 96,
    arbitrary: fc.record({
      kind: fc.constant('result' as const),
      blocks: fc.option(fc.array(block, { maxLength: 3 }), { nil: undefined, freq: 8 }),
      structured: fc.option(fc.oneof({ weight: 3, arbitrary: innerObject }, { weight: 1, arbitrary: inner }), {
        nil: undefined,
      }),
      isError: fc.option(fc.boolean(), { nil: undefined }),
      more: unknown(2),
      meta: fc.option(meta, { nil: undefined }),
    }),
  },
  {
    weight: 24,
    arbitrary: fc.record({
      kind: fc.constant('error' as const),
      code: fc.constantFrom(...CODES),
      message: someString,
      data: fc.option(inner, { nil: undefined }),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('cancelled' as const),
      reason: fc.option(someString, { nil: undefined }),
      more: unknown(1),
      meta: fc.option(meta, { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'dies' as const }) },
)

const reply: fc.Arbitrary<Reply> = fc.record({
  questions: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(question, { minLength: 1, maxLength: 2 }) },
  ),
  progress: fc.array(fc.record({ value: fc.nat({ max: 100 }), more: unknown(2) }), { maxLength: 3 }),
  logs: fc.array(fc.record({ level: fc.constantFrom(...LEVELS), more: unknown(2) }), { maxLength: 2 }),
  outcome,
  spelling,
})

const exchange: fc.Arbitrary<Exchange> = fc.record({
  host: fc.nat({ max: 2 }),
  method: fc.constantFrom(
    'tools/call' as const,
    'tools/call' as const,
    'tools/call' as const,
    'prompts/get' as const,
    'resources/read' as const,
    'completion/complete' as const,
  ),
  target: fc.nat({ max: 5 }),
  id: fc.constantFrom('7', '"7"', '0', '-3', '"a-\\u0062"', '"é"', '9007199254740991', '"\\/"'),
  arguments: fc.option(innerObject, { nil: undefined }),
  more: unknown(),
  meta: fc.option(meta, { nil: undefined }),
  token: fc.option(fc.constantFrom('1', '"t"', '"\\u0074-é"', '0'), { nil: undefined }),
  level: fc.option(fc.constantFrom(...LEVELS), { nil: undefined, freq: 4 }),
  spelling,
  reply,
})

const exchanges: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('exchanges' as const),
  isConcurrent: fc.boolean(),
  exchanges: fc.array(exchange, { minLength: 1, maxLength: 4 }),
})

/** Steps that change the world take longer than what is said in it, so they are rare. */
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 100, arbitrary: exchanges },
  { weight: 8, arbitrary: fc.constant({ kind: 'lists' as const }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('offer' as const), catalog }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('update' as const), target: fc.nat({ max: 3 }), more: unknown(2) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('level' as const), level: fc.constantFrom(...LEVELS) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'server restarts' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'gateway restarts' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('era changes' as const), isBrief: fc.boolean() }) },
)

export const conversations: fc.Arbitrary<Conversation> = fc.record({ steps: fc.array(step, { minLength: 1, maxLength: 3 }) })

/** How often each kind of thing was said, so that a run can show what it covered. */
export const countsOf = ({ steps }: Conversation): Record<string, number> => {
  const counts: Record<string, number> = {}
  const count = (name: string): void => void (counts[name] = (counts[name] ?? 0) + 1)
  for (const each of steps) {
    if (each.kind !== 'exchanges') {
      count(each.kind)
      continue
    }
    for (const { method, reply: replied } of each.exchanges) {
      count(method)
      count(replied.outcome.kind)
      if (replied.outcome.kind === 'result') for (const { type } of replied.outcome.blocks ?? []) count(`block ${type}`)
      for (const _ of replied.progress) count('progress')
      for (const _ of replied.logs) count('log message')
      for (const { kind } of replied.questions) count(`question ${kind}`)
    }
  }
  return counts
}

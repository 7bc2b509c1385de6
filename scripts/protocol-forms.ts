/**
 * What each feature of the interop matrix looks like in the two eras. Where host and server use different forms, Trunkline
 * projects one onto the other; where they use the same, the feature passes in full.
 */
import type { Feature } from '../test/e2e/features.ts'

export type Era = 'legacy' | 'modern'
export type Transport = 'stdio' | 'sse' | 'http'

/** One feature; `rules` are the ids under which its bridging is specified and tested. */
export interface FeatureForms {
  /** The form on one side. Equal texts are equal forms. */
  form: (era: Era, transport: Transport) => string
  /** What Trunkline does whatever the eras are. */
  always: string
  rules: readonly string[]
}

const byEra =
  (legacy: string, modern: string) =>
  (era: Era): string =>
    era === 'legacy' ? legacy : modern

const list: FeatureForms = {
  form: byEra('plain pages', 'pages with `resultType`, `ttlMs` and `cacheScope`'),
  always: 'Reads every page of the server, and serves pages and cursors of its own.',
  rules: ['B106', 'B116', 'B119', 'B149', 'B154'],
}
const read: FeatureForms = {
  form: byEra(
    'a plain result, `-32002` for what does not exist',
    'a result with `resultType`, `ttlMs` and `cacheScope`, `-32602` with `data.uri` for what does not exist',
  ),
  always: 'Rewrites URIs in both directions.',
  rules: ['B007', 'B103', 'B106', 'B149'],
}
const answer = byEra('a plain result', 'a result with `resultType`')

export const featureForms: Readonly<Record<Feature, FeatureForms>> = {
  connects: {
    form: byEra('`initialize` and what it agreed on', '`server/discover`, and `_meta` in each request'),
    always: 'Answers the host itself, and introduces itself to the server.',
    rules: ['B013', 'B024', 'B029', 'B035'],
  },
  'lists every page of tools': list,
  'lists every page of resources': list,
  'lists every page of resource templates': { ...list, rules: [...list.rules, 'B165'] },
  'lists every page of prompts': list,
  'gets progress before the answer to its call': {
    form: () => '`notifications/progress` for the token of the call',
    always: 'Uses a token of its own towards the server, and keeps the order of progress and answer.',
    rules: ['B135', 'B136', 'B137'],
  },
  'cancels a call and the server stops it': {
    form: (era, transport) =>
      era === 'modern' && transport === 'http' ? 'closing the response stream' : '`notifications/cancelled`',
    always: 'Cancels for the host whose call it is, and for nobody else.',
    rules: ['B138', 'B140', 'B143'],
  },
  'reads a resource': read,
  'reads a resource through its template': { ...read, rules: [...read.rules, 'B165'] },
  'gets a prompt with arguments': {
    form: answer,
    always: 'Rewrites the name, and URIs in the messages.',
    rules: ['B008', 'B009', 'B106', 'B109'],
  },
  'completes an argument of a prompt and of a template': {
    form: answer,
    always: 'Finds the owner of the reference and gives it its original name.',
    rules: ['B111', 'B112', 'B168'],
  },
  'hears that the list of tools changed': {
    form: byEra('`notifications/tools/list_changed` on the session', 'a `subscriptions/listen` stream'),
    always: 'Reads the list again first, and tells whoever sees a difference.',
    rules: ['B121', 'B122', 'B123', 'B128', 'B129'],
  },
  'hears that a resource it subscribed to changed': {
    form: byEra('`resources/subscribe` and updates on the session', 'a `subscriptions/listen` stream'),
    always: 'Counts subscribers: the server is asked once.',
    rules: ['B124', 'B131', 'B132', 'B168'],
  },
}

/** What a revision leaves no room for, so that no cell can have it. */
export const impossible: readonly { what: string; where: string; reason: string; rules: readonly string[] }[] = [
  {
    what: '`ping`, `logging/setLevel`, `resources/subscribe` of a host',
    where: 'modern hosts',
    reason: '2026-07-28 has removed them; they are refused with `-32601`. `_meta` and `subscriptions/listen` take their place.',
    rules: ['B101'],
  },
  {
    what: 'lists that a server changes for one session only',
    where: 'modern host, legacy server',
    reason: 'A modern list must not depend on the connection: the host sees the list that everybody sees.',
    rules: [],
  },
  {
    what: 'news that the roots of a host changed',
    where: 'modern host, legacy server',
    reason: '2026-07-28 has no such notification: roots are asked for again from time to time.',
    rules: [],
  },
  {
    what: '`experimental` capabilities',
    where: 'several servers behind one endpoint',
    reason: 'Their keys have no defined meaning that could be merged: they are not declared.',
    rules: [],
  },
]

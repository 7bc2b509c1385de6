/** Parsers of what hosts bring back: tokens, cursors, event ids, names, URIs. Nothing invented opens, everything true returns. */
import { Seal } from '../../../src/auth/seal.ts'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import { exposeNames } from '../../../src/catalog/names/naming.ts'
import { pageOf } from '../../../src/catalog/view/pages.ts'
import { exposeListed, exposeUri, prefixUri, restoreUri } from '../../../src/catalog/names/uris.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import { EventBudget } from '../../../src/host/response/event-budget.ts'
import { EventLog } from '../../../src/host/response/event-log.ts'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { ALWAYS, sourceOf, toolOf } from '../../unit/catalog/fixtures.ts'
import { must, outcome, same } from './target.ts'
import type { Target } from './target.ts'

const seal = new Seal({ keys: [Buffer.alloc(32, 7)], now: () => 0 })
const TOKEN = seal.seal('cursor', { kind: 'tools' })

const logWith = (): { log: EventLog; ids: string[] } => {
  const limits = new LimitCounts({ warn: () => undefined })
  const budget = new EventBudget(() => 10_000, limits)
  const log = new EventLog(
    () => ({ maxEvents: 8, maxEventBytes: 1_000, maxSessionEventBytes: 2_000, maxEventAgeMs: 1_000 }),
    budget,
    limits,
  )
  const ids = [log.open(), log.open()].map((name) => log.append(name, [Buffer.from(name)]))
  return { log, ids }
}

const tokens: Target = {
  name: 'token and event opener',
  words: [
    TOKEN,
    TOKEN.slice(0, 20),
    TOKEN.slice(20),
    'AQ',
    '=',
    '_',
    '-',
    '1-0',
    '1-1',
    '2-0',
    '-',
    '0',
    '9'.repeat(20),
    '\0',
    '__proto__',
  ],
  check: (input) => {
    const text = input.toString('latin1')
    if (text !== TOKEN) for (const purpose of ['cursor', 'state']) same(seal.open(purpose, text), undefined)
    must(!seal.isMark('task', text, text), 'takes no invented mark')
    const made = seal.seal('state', { text }, 1_000)
    same(seal.open('state', made), { text })
    const at = (input[0] ?? 0) % made.length
    const other = made[at] === 'A' ? 'B' : 'A'
    same(seal.open('state', made.slice(0, at) + other + made.slice(at + 1)), undefined)
    const { log } = logWith()
    const after = log.after(text)
    if (after !== undefined) for (const { id } of after.events) must(id.startsWith(`${after.stream}-`), 'replays one stream only')
  },
}

const view = new Views().of(buildCatalog([sourceOf('a', { tools: ['x', 'y', 'z'].map((name) => toolOf(name)) })], ALWAYS), {
  revision: '2025-11-25',
})
const LIMITS = { maxItems: 1, maxBytes: 10_000 }
const CURSOR = pageOf(view, { kind: 'tools', limits: LIMITS, seal, principal: 'local' }).nextCursor ?? ''

const cursors: Target = {
  name: 'cursor codec',
  words: [CURSOR, CURSOR.slice(0, 30), CURSOR.slice(30), TOKEN, 'A', '==', '\n', '%', '2', '{"kind":"tools"}'],
  check: (input) => {
    const text = input.toString('latin1')
    const got = outcome(() => pageOf(view, { kind: 'tools', cursor: text, limits: LIMITS, seal, principal: 'local' }))
    if (text === CURSOR) must('value' in got, 'opens its own cursor')
    else same('error' in got && got.error instanceof Failure && got.error.kind, 'state')
  },
}

const names: Target = {
  name: 'name mangler',
  words: [
    '\n',
    'a',
    '__',
    'a__b',
    '_',
    '-',
    '.',
    '/',
    ' ',
    'é',
    '日本',
    '\ud83d',
    '🙂',
    'x'.repeat(60),
    '__proto__',
    'constructor',
    'A',
  ],
  check: (input) => {
    const originals = [...new Set(input.toString().split('\n'))].filter((name) => name !== '')
    for (const maxNameLength of [16, 48, 128]) {
      const exposed = exposeNames({ prefix: 'srv', alias: {} }, originals, { prefix: 'always', maxNameLength })
      same([...exposed.keys()], originals)
      must(new Set(exposed.values()).size === originals.length, 'names differ where originals do')
      const allowed = new RegExp(`^[A-Za-z0-9_-]{1,${maxNameLength}}$`)
      for (const name of exposed.values()) must(allowed.test(name), 'exposes names every host takes')
      const others = exposeNames({ prefix: 'other', alias: {} }, originals, { prefix: 'always', maxNameLength })
      must(new Set([...exposed.values(), ...others.values()]).size === originals.length * 2, 'keeps servers apart')
    }
  },
}

const isOurs = (prefix: string): boolean => prefix === 'srv' || prefix === 'a'
const uris: Target = {
  name: 'resource URI rewriter',
  words: [
    'srv+',
    'a+',
    'ui://',
    'ui://~srv/',
    'ui://~',
    'http://',
    'HTTPS://',
    'file:///',
    'x:',
    '+',
    '~',
    '/',
    '{id}',
    '{+path}',
    '%2f',
    '..',
    '#',
    '?',
    '\0',
    'é',
    'urn:',
  ],
  check: (input) => {
    const uri = input.toString()
    restoreUri(uri, isOurs)
    if (uri === '') return
    same(restoreUri(prefixUri('srv', uri), isOurs), { prefix: 'srv', original: uri })
    const listed = exposeListed('srv', uri)
    if (listed === uri) must(/^https?:\/\//i.test(uri), 'leaves only http(s) alone')
    const exposed = exposeUri('srv', uri)
    if (exposed === uri) must(!/^[a-z][a-z0-9+.-]*:/i.test(uri) || listed === uri, 'leaves only http(s) and relative ones alone')
    else same(restoreUri(exposed, isOurs), { prefix: 'srv', original: uri })
  },
}

export const nameTargets: readonly Target[] = [tokens, cursors, names, uris]

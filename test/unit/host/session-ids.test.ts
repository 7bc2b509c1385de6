/** What several processes know of one session (B276): by the state folder, and by the store that replicas share. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Seal } from '../../../src/auth/seal.ts'
import { SessionIds } from '../../../src/host/session/session-ids.ts'
import type { SessionSettings } from '../../../src/host/session/session-settings.ts'
import type { Scope } from '../../../src/rpc/call.ts'
import { digestOf } from '../../../src/values/digest.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { Store } from '../../../src/store/store.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))

const seal = new Seal({ keys: [Buffer.alloc(32)] })
const introduction = { revision: '2025-11-25', capabilities: {}, clientInfo: undefined, hops: 0 } as const
const SCOPE = { server: undefined }

const open = (more: { folder?: string; store?: Store } = {}): { ids: SessionIds; warnings: string[] } => {
  const warnings: string[] = []
  const log = { warn: (_facts: object, message: string): void => void warnings.push(message) }
  const common = { seal, maxMs: () => 3_600_000, home: undefined, log }
  return { ids: new SessionIds({ ...common, folder: more.folder, store: more.store }), warnings }
}
const settingsOf = (ids: SessionIds, id: string): SessionSettings | undefined => ids.reopen(id, 'p', SCOPE)?.settings
const error = { level: 'error' } as const
const alert = { level: 'alert' } as const

test('B276 what was set later counts, whether the store has it or this replica alone', async () => {
  using clock = vi.spyOn(Date, 'now')
  const at = (ms: number): void => void clock.mockReturnValue(1_800_000_000_000 + ms)
  at(0)
  const store = new MemoryStore()
  const [one, other] = [open({ store }).ids, open({ store }).ids]
  const id = one.mint(introduction, 'p', SCOPE)
  expect(settingsOf(other, id)).toEqual({})
  one.keep(id, error)
  await other.learn(id)
  expect(settingsOf(other, id)).toEqual(error)
  at(1)
  other.keep(id, alert)
  await one.learn(id)
  expect(settingsOf(one, id)).toEqual(alert)
  at(2)
  using away = vi.spyOn(store, 'set').mockRejectedValue(new Error('away'))
  one.keep(id, error)
  away.mockRestore()
  await one.learn(id)
  expect(settingsOf(one, id)).toEqual(error)
})

test('B276 an ended session leaves nothing behind, in the folder or the store', async () => {
  const store = new MemoryStore()
  const { ids } = open({ folder, store })
  const id = ids.mint(introduction, 'p', SCOPE)
  ids.keep(id, error)
  ids.end(id)
  ids.close()
  expect(open({ folder }).ids.reopen(id, 'p', SCOPE)).toBeUndefined()
  const { ids: next } = open({ store })
  await next.learn(id)
  expect([next.hasEnded(id), next.reopen(id, 'p', SCOPE)]).toEqual([true, undefined])
})

test('B276 a session that watches more than is written down is told of in the log, once', () => {
  const { ids, warnings } = open({ folder })
  const watched = Array.from({ length: 256 }, (_, at) => `x:${at}${'y'.repeat(100)}`)
  const id = ids.mint(introduction, 'p', SCOPE)
  ids.keep(id, { watched: watched.slice(0, 100) })
  expect(warnings).toEqual([])
  ids.keep(id, { watched })
  ids.keep(id, { watched: watched.slice(1) })
  expect(warnings).toHaveLength(1)
  ids.close()
  expect(settingsOf(open({ folder }).ids, id)?.watched).toEqual(watched.slice(1, 128))
})

test('B276 T-05 an id is continued only for its principal', () => {
  const { ids } = open()
  const id = ids.mint(introduction, 'p', SCOPE)
  expect([ids.reopen(id, 'p', SCOPE) !== undefined, ids.reopen(id, 'q', SCOPE)]).toEqual([true, undefined])
})

test('B276 the streams of a session of another replica are taken up once', async () => {
  const store = new MemoryStore()
  const { ids } = open({ store })
  const id = ids.mint(introduction, 'p', SCOPE)
  await store.append(`events:${digestOf(id)}`, ['["open","1"]'], 10, 60_000)
  await ids.learn(id)
  expect([ids.restored(id)?.size, ids.restored(id)]).toEqual([1, undefined])
})

test('B276 an id is continued only at its endpoint; a bridge to the only server is the merged endpoint', () => {
  const { ids } = open()
  const scopes: Readonly<Record<string, Scope>> = {
    merged: SCOPE,
    only: { server: 'a', isMerged: true },
    server: { server: 'a' },
    toolset: { server: undefined, toolset: 't' },
    both: { server: 'a', toolset: 't' },
  }
  const foundAt = (from: Scope): readonly string[] => {
    const id = ids.mint(introduction, 'p', from)
    return Object.entries(scopes).flatMap(([name, scope]) => (ids.reopen(id, 'p', scope) === undefined ? [] : [name]))
  }
  expect(Object.values(scopes).map(foundAt)).toEqual([['merged', 'only'], ['merged', 'only'], ['server'], ['toolset'], ['both']])
})

/**
 * Stores inventories, era verdicts and pins of servers between runs: one file per server in the state folder, written to a temporary file
 * and renamed. A broken file is renamed and logged, never fatal (DECISIONS 1). With a shared store, an inventory without a file is that of
 * another replica.
 */
import { createHash } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { decodeInventory, encodeInventory, LIST_KINDS, perKind } from '../../catalog/inventory.ts'
import type { EncodedInventory, Inventory } from '../../catalog/inventory.ts'
import type { Pin } from '../../catalog/lock/pinned.ts'
import type { Verdict } from '../../era/server/dial.ts'
import { makeFolder } from '../../make-folder.ts'
import { parseOwnJson } from '../../values/own-json.ts'
import type { Log } from '../../values/log.ts'
import type { Memory, OtherHosts } from '../environment.ts'
import type { ServerOptions } from '../options.ts'
import type { SharedLists } from './shared-lists.ts'
import { attempt } from '../../values/attempt.ts'

/** Lifetime of a legacy verdict, which would otherwise never be checked again (BRIDGING 5.2). */
const LEGACY_VERDICT_MS = 24 * 3_600_000
/** Lists older than this are not served while a server is down (BRIDGING 3.19). */
const STALE_LISTS_MS = 24 * 3_600_000
/** Period of writing the time of unchanged lists. */
const CONFIRM_MS = 3_600_000

interface Lists {
  readonly savedAt: number
  readonly inventory?: EncodedInventory
  /** The lists of a server of both eras for legacy hosts. */
  readonly legacyInventory?: EncodedInventory | undefined
}
interface Stored extends Lists {
  readonly launch: string
  /** `undefined`: dropped. */
  readonly verdict?: Verdict | undefined
  readonly verdictAt?: number
  /** See `Memory.hasFailed`. */
  readonly hasFailed?: boolean
  readonly pins?: Readonly<Record<string, Pin>>
  readonly appsPins?: Readonly<Record<string, Pin>>
  readonly legacyPins?: Readonly<Record<string, Pin>>
}

/** `folder`: `undefined` stores in memory only. `shared`: lists of other replicas. */
export const openMemory = (folder: string | undefined, log: Log, shared?: SharedLists): Memory => {
  const records = new Map<string, Stored>()
  let isWritable = folder !== undefined && makeStateFolder(folder, log)

  const load = (options: ServerOptions): Stored | undefined => {
    const launch = launchDigest(options)
    const known = records.get(options.key) ?? (folder === undefined ? undefined : readRecord(fileOf(folder, options), log))
    if (known?.launch !== launch) return undefined
    records.set(options.key, known)
    return known
  }

  const save = (options: ServerOptions, change: Partial<Stored>): void => {
    const record: Stored = { ...load(options), ...change, launch: launchDigest(options), savedAt: Date.now() }
    records.set(options.key, record)
    if (!isWritable || folder === undefined) return
    try {
      writeAtomically(fileOf(folder, options), JSON.stringify(record))
    } catch (error) {
      isWritable = false
      log.warn({ folder, error: String(error) }, 'the state folder cannot be written; going on in memory')
    }
  }

  const share = (options: ServerOptions, isSame: boolean): void => {
    const { savedAt, inventory, legacyInventory } = load(options) ?? {}
    if (inventory !== undefined) shared?.keep(definitionOf(options), { savedAt, inventory, legacyInventory }, isSame)
  }

  return {
    learn: async (servers) => {
      const unknown = servers.filter((options) => freshLists(load(options)) === undefined)
      await shared?.learn(unknown.map(definitionOf))
    },
    inventory: (options, of) => {
      const name = of === 'legacy' ? 'legacyInventory' : 'inventory'
      const record = freshLists(load(options)) ?? freshLists(shared?.find(definitionOf(options)))
      const stored = record?.[name]
      return stored === undefined ? undefined : revive(stored)
    },
    keepInventory: (options, inventory) => {
      save(options, { inventory: encodeInventory(inventory), hasFailed: false })
      share(options, false)
    },
    keepLegacyInventory: (options, inventory) => {
      save(options, { legacyInventory: inventory && encodeInventory(inventory) })
      share(options, false)
    },
    confirmInventory: (options, inventory) => {
      const record = load(options)
      // An inventory of another replica is not in the file yet.
      if (record?.inventory === undefined) save(options, { inventory: encodeInventory(inventory), hasFailed: false })
      else if (Date.now() - record.savedAt >= CONFIRM_MS) save(options, {})
      share(options, true)
    },
    hasFailed: (options) => load(options)?.hasFailed === true,
    keepFailed: (options) => {
      const record = load(options)
      if (record?.hasFailed !== true && record?.inventory === undefined) save(options, { hasFailed: true })
    },
    pins: (options, of) => load(options)?.[pinsOf(of)] ?? {},
    keepPins: (options, pins, of) => {
      const name = pinsOf(of)
      if (!isDeepStrictEqual(load(options)?.[name] ?? {}, pins)) save(options, { [name]: pins })
    },
    verdict: (options) => {
      const record = load(options)
      return record !== undefined && isVerdictOld(record) ? undefined : record?.verdict
    },
    keepVerdict: (options, verdict) => {
      const known = load(options)
      if (isDeepStrictEqual(verdict, known?.verdict) && !(known !== undefined && isVerdictOld(known))) return
      save(options, verdict === undefined ? { verdict: undefined } : { verdict, verdictAt: Date.now() })
    },
  }
}

const isVerdictOld = ({ verdict, verdictAt = 0 }: Stored): boolean =>
  verdict?.era === 'legacy' && Date.now() - verdictAt > LEGACY_VERDICT_MS

/** The record, if its lists may be served while the server is down. */
const freshLists = (record: object | undefined): Lists | undefined => {
  if (record === undefined) return undefined
  // Cast: written by this program.
  const { savedAt = 0, inventory, legacyInventory } = record as Partial<Lists>
  const isKnown = (inventory ?? legacyInventory) !== undefined && Date.now() - savedAt < STALE_LISTS_MS
  // Cast: checked here.
  return isKnown && hasWholeLists(record) ? (record as Lists) : undefined
}

const hasWholeLists = ({ inventory, legacyInventory }: Partial<Lists>): boolean =>
  [inventory, legacyInventory].every(
    (stored) => stored === undefined || LIST_KINDS.every((kind) => Array.isArray(stored.lists[kind])),
  )

const pinsOf = (of: OtherHosts | undefined) => (of === undefined ? 'pins' : (`${of}Pins` as const))

/** Stores verdicts, but no lists: for the connection of one principal (DECISIONS 1). */
export const inMemory = (memory: Memory): Memory => ({
  ...memory,
  inventory: () => undefined,
  keepInventory: () => undefined,
  keepLegacyInventory: () => undefined,
  confirmInventory: () => undefined,
  hasFailed: () => false,
  keepFailed: () => undefined,
  pins: () => ({}),
  keepPins: () => undefined,
})

/** Digest of the options that must be unchanged for a stored record to be valid. */
const launchDigest = (options: ServerOptions): string => {
  const { launch, url, transport, era, headers, credential } = options.configured ?? options
  return createHash('sha256')
    .update(JSON.stringify([launch, url?.href, transport, era, headers, ...(credential === undefined ? [] : [credential])]))
    .digest('base64url')
}

/** Identifies a server for other replicas. */
const definitionOf = (options: ServerOptions): string => JSON.stringify([options.key, launchDigest(options)])

const fileOf = (folder: string, options: ServerOptions): string => join(folder, `server-${options.key}.json`)

const makeStateFolder = (folder: string, log: Log): boolean => {
  try {
    makeFolder(folder)
    return true
  } catch (error) {
    log.warn({ folder, error: String(error) }, 'the state folder cannot be made (state.dir); going on in memory')
    return false
  }
}

const writeAtomically = (file: string, text: string): void => {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

const readRecord = (file: string, log: Log): Stored | undefined => {
  const text = attempt(() => readFileSync(file, 'utf8'))
  if (text === undefined) return undefined
  try {
    const record = parseOwnJson<Stored>(text)
    if (typeof record.launch === 'string' && hasWholeLists(record)) return record
  } catch {
    // set aside below
  }
  log.warn({ file }, 'a broken state file is set aside')
  renameSync(file, `${file}.broken`)
  return undefined
}

/** Stored lists are served with a lifetime of 0. */
const revive = (stored: EncodedInventory): Inventory => ({
  ...decodeInventory(stored),
  freshness: perKind((kind) => ({ ...stored.freshness[kind], receivedAtMs: 0, ttlMs: 0 })),
})

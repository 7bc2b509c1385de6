/**
 * Ids of legacy sessions over HTTP. An id seals the host's `initialize` and the endpoint, so that a later process with the same key can
 * continue the session: many hosts do not send `initialize` again (BRIDGING 5.1; B276).
 *
 *     id = seal("session", [revision, capabilities, clientInfo, principal, server, toolset, issued, 128 random bits, replica])
 *
 * The seal adds a version, the key's id and the expiry. The replica is included only if several are configured. Later facts (that the
 * session has ended, and its settings) are kept on disk until the id expires, and in the shared store.
 */
import type { Log } from '../../values/log.ts'
import { randomBytes } from 'node:crypto'
import type { Purpose, Seal } from '../../auth/seal.ts'
import type { Introduction } from '../../era/host/legacy-host.ts'
import { endpointServer, isSameEndpoint } from '../../rpc/call.ts'
import type { Scope } from '../../rpc/call.ts'
import type { Store } from '../../store/store.ts'
import { digestOf } from '../../values/digest.ts'
import { isJsonObject } from '../../values/json-object.ts'
import { readStored } from '../response/stored-events.ts'
import type { StoredStream } from '../response/stored-events.ts'
import { isLegacyRevision } from '../../wire/protocol/revisions.ts'
import { SessionFile } from './session-file.ts'
import { encodeSettings, NO_SETTINGS, readSettings } from './session-settings.ts'
import type { SessionSettings } from './session-settings.ts'

/** A longer id is not sealed, since it is a header of every request. Its session ends with the process. */
const MAX_ID_LENGTH = 1024
const RANDOM_BYTES = 16
/** Length of an id that is not sealed. */
const RANDOM_LENGTH = 22
const PURPOSE: Purpose<readonly unknown[]> = 'session'
/** For ids of HTTP+SSE streams. */
const STREAM: Purpose<readonly unknown[]> = 'event stream'
/** Lifetime of ids if sessions have no maximum age. */
const LONGEST_MS = 365 * 24 * 3_600_000
/** Entries per file. */
const MAX_KEPT = 10_000
/** Size of all settings together. */
const MAX_SETTINGS_BYTES = 4 * 1024 * 1024
/** Entry of an ended session. */
const ENDED = 'null'

/** A session of an earlier process. */
export interface Reopened {
  readonly introduction: Introduction
  readonly settings: SessionSettings
  /** Wall clock in milliseconds. */
  readonly issuedMs: number
}

export interface SessionIdsOptions {
  readonly seal: Seal
  /** State folder; `undefined`: later processes know neither ended sessions nor settings. */
  readonly folder: string | undefined
  /** Number of this process among those that share the folder; absent: there is one process. */
  readonly member?: number | undefined
  /** Maximum age of sessions in milliseconds (`listen.limits.session_max`). */
  readonly maxMs: () => number
  /** This replica (`formatHome`); `undefined`: no replicas are configured. */
  readonly home: string | undefined
  readonly store: Store | undefined
  readonly log: Pick<Log, 'warn'>
}

export class SessionIds {
  readonly #options: SessionIdsOptions
  readonly #ended: SessionFile
  readonly #settings: SessionFile
  readonly #restored = new Map<string, ReadonlyMap<string, StoredStream>>()
  #hasCut = false

  constructor(options: SessionIdsOptions) {
    this.#options = options
    const { folder, member, log } = options
    const common = { folder, member, log, maxEntries: MAX_KEPT }
    this.#ended = new SessionFile({ ...common, name: 'ended-sessions', maxBytes: Infinity })
    this.#settings = new SessionFile({ ...common, name: 'session-settings', maxBytes: MAX_SETTINGS_BYTES })
  }

  /** Returns an id for a new session. */
  mint({ revision, capabilities, clientInfo }: Introduction, principal: string, scope: Scope): string {
    const { seal, home } = this.#options
    const random = randomBytes(RANDOM_BYTES).toString('base64url')
    const endpoint = [endpointServer(scope) ?? null, scope.toolset ?? null]
    const rest = [principal, ...endpoint, Date.now(), random, ...(home === undefined ? [] : [home])]
    for (const info of [clientInfo ?? null, null]) {
      const id = seal.seal(PURPOSE, [revision, capabilities, info, ...rest], this.#ttlMs)
      if (id.length <= MAX_ID_LENGTH) return id
    }
    if (home === undefined) return random
    // An id without `initialize`: other replicas can forward to this one, but cannot continue the session.
    const id = seal.seal(PURPOSE, [null, null, null, ...rest], this.#ttlMs)
    return id.length <= MAX_ID_LENGTH ? id : random
  }

  /** Returns an id for an HTTP+SSE stream, which names the replica if several are configured. */
  mintStream(): string {
    const { seal, home } = this.#options
    const random = randomBytes(RANDOM_BYTES).toString('base64url')
    return home === undefined ? random : seal.seal(STREAM, [random, home])
  }

  /** Returns the replica at which a session or stream began; `undefined`: the id is not ours, or names no replica. */
  homeOf(id: string): string | undefined {
    if (id.length > MAX_ID_LENGTH) return undefined
    const { seal } = this.#options
    const facts = seal.open(PURPOSE, id) ?? seal.open(STREAM, id)
    const home = facts?.[facts.length === 2 ? 1 : 8]
    return typeof home === 'string' ? home : undefined
  }

  /** Whether the session is known here to have ended. */
  hasEnded(id: string): boolean {
    return this.#ended.has(digestOf(id))
  }

  /** Reads the end, streams and settings of a session that this replica takes over. Rejects with `StoreDown`. */
  async learn(id: string): Promise<void> {
    const { store } = this.#options
    const digest = digestOf(id)
    if (this.#ended.has(digest) || store === undefined) return
    const [[end, settings], streams] = await Promise.all([
      store.getAll([endedKey(digest), settingsKey(digest)]),
      readStored(store, digest),
    ])
    if (end !== undefined) return this.#ended.set(digest, ENDED, this.#untilMs)
    if (settings !== undefined) this.#adopt(digest, settings)
    if (streams.size > 0) this.#restored.set(id, streams)
  }

  /** Returns the streams that `learn` has read, and removes them here. */
  restored(id: string): ReadonlyMap<string, StoredStream> | undefined {
    const streams = this.#restored.get(id)
    this.#restored.delete(id)
    return streams
  }

  /** Returns the session of an id; `undefined`: the id is of another principal or endpoint, or the session has ended. */
  reopen(id: string, principal: string, scope: Scope): Reopened | undefined {
    if (id.length > MAX_ID_LENGTH || this.#ended.has(digestOf(id))) return undefined
    const facts = this.#options.seal.open(PURPOSE, id)
    if (facts === undefined) return undefined
    const [revision, capabilities, clientInfo, owner, server, toolset, issuedMs] = facts
    const sealed: Scope = {
      server: typeof server === 'string' ? server : undefined,
      ...(typeof toolset === 'string' && { toolset }),
    }
    if (typeof revision !== 'string' || !isLegacyRevision(revision)) return undefined
    if (!isJsonObject(capabilities) || typeof issuedMs !== 'number') return undefined
    if (owner !== principal || !isSameEndpoint(sealed, scope)) return undefined
    const introduction: Introduction = { revision, capabilities, clientInfo, hops: 0 }
    const settings = this.#settings.get(digestOf(id))?.text
    return {
      introduction,
      settings: settings === undefined ? NO_SETTINGS : readSettings(settings),
      issuedMs,
    }
  }

  /** Stores the settings of a session, for processes that continue it. */
  keep(id: string, settings: SessionSettings): void {
    if (id.length === RANDOM_LENGTH) return
    const digest = digestOf(id)
    const { text, isWhole } = encodeSettings(settings)
    if (!isWhole && !this.#hasCut) {
      this.#hasCut = true
      this.#options.log.warn(
        {},
        'a session watches more resources than are written down: after a restart it watches the first of them',
      )
    }
    const untilMs = this.#untilMs
    this.#settings.set(digest, text, untilMs)
    // While the store is unavailable, only this replica knows the settings.
    this.#options.store?.set(settingsKey(digest), `${untilMs} ${text}`, this.#ttlMs).catch(() => undefined)
  }

  /** Replaces the settings by those of the store if these were set later, and so expire later. */
  #adopt(digest: string, stored: string): void {
    const cut = stored.indexOf(' ')
    const untilMs = Number(stored.slice(0, cut))
    if (untilMs > (this.#settings.get(digest)?.untilMs ?? 0)) this.#settings.set(digest, stored.slice(cut + 1), untilMs)
  }

  /** Records that a session has ended and must not be continued. */
  end(id: string): void {
    if (id.length === RANDOM_LENGTH) return
    const { store } = this.#options
    const digest = digestOf(id)
    this.#ended.set(digest, ENDED, this.#untilMs)
    // While the store is unavailable, other replicas accept the id until it expires.
    store?.set(endedKey(digest), '1', this.#ttlMs).catch(() => undefined)
    if (this.#settings.delete(digest)) store?.delete(settingsKey(digest)).catch(() => undefined)
  }

  /** Writes pending changes. */
  close(): void {
    this.#ended.close()
    this.#settings.close()
  }

  /** Expiry of an id that is sealed now, wall clock. */
  get #untilMs(): number {
    return Date.now() + this.#ttlMs
  }

  get #ttlMs(): number {
    return Math.min(this.#options.maxMs(), LONGEST_MS)
  }
}

const endedKey = (digest: string): string => `ended:${digest}`
const settingsKey = (digest: string): string => `settings:${digest}`

/**
 * Ids of legacy sessions over HTTP. An id seals the host's `initialize` and the endpoint, so that a later process with the same key can
 * continue the session: many hosts do not initialize a second time (BRIDGING 5.1; B276).
 *
 *     id = seal("session", [revision, capabilities, clientInfo, principal, server, toolset, issued, 128 random bits, replica])
 *
 * The seal adds a version, the key's id and the expiry. The replica stands there only where there are several. What an id cannot say, since
 * it came later, is on disk until its expiry, and in the store that replicas share: that a session has ended, and what its host has set.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Purpose, Seal } from '../../auth/seal.ts'
import type { Introduction } from '../../era/host/legacy-host.ts'
import { endpointServer, isSameEndpoint } from '../../rpc/call.ts'
import type { Scope } from '../../rpc/call.ts'
import type { Store } from '../../store/store.ts'
import { isJsonObject } from '../../values/json-object.ts'
import { readStored } from '../response/stored-events.ts'
import type { StoredStream } from '../response/stored-events.ts'
import { isLegacyRevision } from '../../wire/protocol/revisions.ts'
import { SessionFile } from './session-file.ts'
import { encodeSettings, NO_SETTINGS, readSettings } from './session-settings.ts'
import type { SessionSettings } from './session-settings.ts'

/** An id is a header of every request: a longer one is not sealed, and its session ends with the process. */
const MAX_ID_LENGTH = 1024
const RANDOM_BYTES = 16
/** Of an id that is not sealed. */
const RANDOM_LENGTH = 22
const PURPOSE: Purpose<readonly unknown[]> = 'session'
/** Of an HTTP+SSE stream. */
const STREAM: Purpose<readonly unknown[]> = 'event stream'
/** Where sessions have no end. */
const LONGEST_MS = 365 * 24 * 3_600_000
/** Sessions of which more is kept than their id. */
const MAX_KEPT = 10_000
/** Of what hosts have set, in all. */
const MAX_SETTINGS_BYTES = 4 * 1024 * 1024
/** That a session has ended. */
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
  /** Of state; `undefined`: what has ended, or was set, is not known to a later process. */
  readonly folder: string | undefined
  /** Of several processes that share the folder, each writes files of its own; absent: there is one. */
  readonly member?: number | undefined
  /** How long a session may last, in milliseconds (`listen.limits.session_max`). */
  readonly maxMs: () => number
  /** This replica, as the others find it; `undefined`: there are none. */
  readonly home: string | undefined
  readonly store: Store | undefined
  readonly log: { warn(facts: object, message: string): void }
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

  /** An id for a new session. */
  mint({ revision, capabilities, clientInfo }: Introduction, principal: string, scope: Scope): string {
    const { seal, home } = this.#options
    const random = randomBytes(RANDOM_BYTES).toString('base64url')
    const endpoint = [endpointServer(scope) ?? null, scope.toolset ?? null]
    const rest = [principal, ...endpoint, Date.now(), random, ...(home === undefined ? [] : [home])]
    for (const said of [clientInfo ?? null, null]) {
      const id = seal.seal(PURPOSE, [revision, capabilities, said, ...rest], this.#ttlMs)
      if (id.length <= MAX_ID_LENGTH) return id
    }
    if (home === undefined) return random
    // It is found as long as its replica runs.
    const id = seal.seal(PURPOSE, [null, null, null, ...rest], this.#ttlMs)
    return id.length <= MAX_ID_LENGTH ? id : random
  }

  /** Names an HTTP+SSE stream, and its replica where there are several. */
  mintStream(): string {
    const { seal, home } = this.#options
    const random = randomBytes(RANDOM_BYTES).toString('base64url')
    return home === undefined ? random : seal.seal(STREAM, [random, home])
  }

  /** The replica at which a session or stream began; `undefined`: the id is not ours, or names none. */
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

  /**
   * Reads from the store what other replicas know of a session that this one takes over: whether it has ended, its streams, and what its
   * host has set. Rejects with `StoreDown`.
   */
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

  /** The streams that `learn` has read, once. */
  restored(id: string): ReadonlyMap<string, StoredStream> | undefined {
    const streams = this.#restored.get(id)
    this.#restored.delete(id)
    return streams
  }

  /** The session that this id was made for, if it was made for this caller at this endpoint and has not ended. */
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

  /** The host of the session has set something: what goes on with the session finds it. */
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
    // While the store is away this replica alone knows.
    this.#options.store?.set(settingsKey(digest), `${untilMs} ${text}`, this.#ttlMs).catch(() => undefined)
  }

  /** What was set later has the later end: of what is here and what is in the store, that is what counts. */
  #adopt(digest: string, stored: string): void {
    const cut = stored.indexOf(' ')
    const untilMs = Number(stored.slice(0, cut))
    if (untilMs > (this.#settings.get(digest)?.untilMs ?? 0)) this.#settings.set(digest, stored.slice(cut + 1), untilMs)
  }

  /** The session has ended for good. */
  end(id: string): void {
    if (id.length === RANDOM_LENGTH) return
    const { store } = this.#options
    const digest = digestOf(id)
    this.#ended.set(digest, ENDED, this.#untilMs)
    // Without the store the id stays good at other replicas until its expiry.
    store?.set(endedKey(digest), '1', this.#ttlMs).catch(() => undefined)
    if (this.#settings.delete(digest)) store?.delete(settingsKey(digest)).catch(() => undefined)
  }

  /** Writes what is not written yet. */
  close(): void {
    this.#ended.close()
    this.#settings.close()
  }

  /** No id of now is good any longer, wall clock. */
  get #untilMs(): number {
    return Date.now() + this.#ttlMs
  }

  get #ttlMs(): number {
    return Math.min(this.#options.maxMs(), LONGEST_MS)
  }
}

const endedKey = (digest: string): string => `ended:${digest}`
const settingsKey = (digest: string): string => `settings:${digest}`

/** Names a session where its id must not be seen. */
export const digestOf = (id: string): string => createHash('sha256').update(id).digest('base64url').slice(0, 22)

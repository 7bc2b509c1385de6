/**
 * Ids of legacy sessions over HTTP. An id seals the host's `initialize` and the endpoint, so that a later process with the same key can
 * continue the session: many hosts do not initialize a second time (BRIDGING 5.1; B276).
 *
 *     id = seal("session", [revision, capabilities, clientInfo, principal, server, toolset, issued, 128 random bits, replica])
 *
 * The seal adds a version, the key's id and the expiry. Ended sessions are listed on disk until their expiry, so that they stay ended, and
 * in the store that replicas share. The replica stands there only where there are several.
 */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Seal } from '../../auth/seal.ts'
import type { Introduction } from '../../era/host/legacy-host.ts'
import { endpointServer, isSameEndpoint } from '../../rpc/call.ts'
import type { Capabilities, Scope } from '../../rpc/call.ts'
import type { Store } from '../../store/store.ts'
import { readStored } from '../response/stored-events.ts'
import type { StoredStream } from '../response/stored-events.ts'
import { isLegacyRevision } from '../../wire/protocol/revisions.ts'

/** An id is a header of every request: a longer one is not sealed, and its session ends with the process. */
const MAX_ID_LENGTH = 1024
const RANDOM_BYTES = 16
/** Of an id that is not sealed. */
const RANDOM_LENGTH = 22
const PURPOSE = 'session'
/** Of an HTTP+SSE stream. */
const STREAM = 'event stream'
/** Where sessions have no end. */
const LONGEST_MS = 365 * 24 * 3_600_000
/** Ended sessions that are kept; the oldest go first. */
const MAX_ENDED = 10_000
/** The list of ended sessions is written at most this often, the first time at once. */
const WRITE_GAP_MS = 1_000

/** A session of an earlier process. */
export interface Reopened {
  readonly introduction: Introduction
  /** Wall clock in milliseconds. */
  readonly issuedMs: number
}

export interface SessionIdsOptions {
  readonly seal: Seal
  /** Of state; `undefined`: what has ended is not known to a later process. */
  readonly folder: string | undefined
  /** Of several processes that share the folder, each writes a list of its own; absent: there is one. */
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
  readonly #file: string | undefined
  /** By digest of the id: until when it would have been good, wall clock in milliseconds. */
  readonly #ended: Map<string, number>
  readonly #restored = new Map<string, ReadonlyMap<string, StoredStream>>()
  #writtenMs = -Infinity
  #timer: NodeJS.Timeout | undefined

  constructor(options: SessionIdsOptions) {
    this.#options = options
    const { folder, member } = options
    this.#file = folder === undefined ? undefined : join(folder, `ended-sessions${member === undefined ? '' : `-${member}`}.json`)
    this.#ended = folder === undefined ? new Map() : readAllEnded(folder)
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
    const home: unknown = Array.isArray(facts) ? facts[facts.length === 2 ? 1 : 8] : undefined
    return typeof home === 'string' ? home : undefined
  }

  /** Whether the session is known here to have ended. */
  hasEnded(id: string): boolean {
    return this.#ended.has(digestOf(id))
  }

  /**
   * Reads from the store what other replicas know of a session that this one takes over: whether it has ended, and its streams. Rejects
   * with `StoreDown`.
   */
  async learn(id: string): Promise<void> {
    const { store } = this.#options
    const digest = digestOf(id)
    if (this.#ended.has(digest) || store === undefined) return
    const [end, streams] = await Promise.all([store.get(endedKey(digest)), readStored(store, digest)])
    if (end !== undefined) this.#note(digest)
    else if (streams.size > 0) this.#restored.set(id, streams)
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
    if (!Array.isArray(facts)) return undefined
    const [revision, capabilities, clientInfo, owner, server, toolset, issuedMs] = facts as unknown[]
    const sealed: Scope = {
      server: (server as string | null) ?? undefined,
      ...(toolset !== null && { toolset: toolset as string }),
    }
    if (typeof revision !== 'string' || !isLegacyRevision(revision)) return undefined
    if (owner !== principal || !isSameEndpoint(sealed, scope)) return undefined
    const introduction: Introduction = { revision, capabilities: capabilities as Capabilities, clientInfo, hops: 0 }
    return { introduction, issuedMs: issuedMs as number }
  }

  /** The session has ended for good. */
  end(id: string): void {
    if (id.length === RANDOM_LENGTH) return
    const digest = digestOf(id)
    this.#note(digest)
    // Without the store the id stays good at other replicas until its expiry.
    this.#options.store?.set(endedKey(digest), '1', this.#ttlMs).catch(() => undefined)
  }

  #note(digest: string): void {
    const [oldest] = this.#ended.keys()
    if (this.#ended.size >= MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest)
    this.#ended.set(digest, Date.now() + this.#ttlMs)
    const waitMs = this.#writtenMs + WRITE_GAP_MS - performance.now()
    if (waitMs <= 0) this.#write()
    else this.#timer ??= setTimeout(() => this.#write(), waitMs).unref()
  }

  /** Writes what is not written yet. */
  close(): void {
    if (this.#timer !== undefined) this.#write()
  }

  get #ttlMs(): number {
    return Math.min(this.#options.maxMs(), LONGEST_MS)
  }

  #write(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writtenMs = performance.now()
    if (this.#file === undefined) return
    const nowMs = Date.now()
    for (const [digest, untilMs] of this.#ended) if (untilMs <= nowMs) this.#ended.delete(digest)
    try {
      writeFileSync(`${this.#file}.new`, JSON.stringify([...this.#ended]), { mode: 0o600 })
      renameSync(`${this.#file}.new`, this.#file)
    } catch (error) {
      this.#options.log.warn({ file: this.#file, error: String(error) }, 'ended sessions cannot be written down')
    }
  }
}

const endedKey = (digest: string): string => `ended:${digest}`

/** Names a session where its id must not be seen. */
export const digestOf = (id: string): string => createHash('sha256').update(id).digest('base64url').slice(0, 22)

const ENDED_FILE = /^ended-sessions(-\d+)?\.json$/

/** Of all processes that have shared the folder. */
const readAllEnded = (folder: string): Map<string, number> => {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => ENDED_FILE.test(name)) : []
  return new Map(names.flatMap((name) => [...readEnded(join(folder, name))]))
}

/** A file that is missing or broken lists nothing. */
const readEnded = (file: string): Map<string, number> => {
  try {
    const entries = JSON.parse(readFileSync(file, 'utf8')) as [string, number][]
    return new Map(entries.filter(([digest, untilMs]) => typeof digest === 'string' && untilMs > Date.now()))
  } catch {
    return new Map()
  }
}

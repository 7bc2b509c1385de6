/**
 * The hosts that have connected, by their `clientInfo`, and how many tools each was listed. Kept in files of the state folder, because
 * `trunkline connect` waits there for the first request of a host, and any process of the configuration may serve that request.
 *
 * Hosts choose their names, so the number of files is bounded: a name is hashed to one of `SLOTS` files, which holds the latest sighting.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Scope } from '../rpc/call.ts'
import { makeFolder } from '../make-folder.ts'
import { memberOf } from '../values/json-object.ts'
import { parseOwnJson } from '../values/own-json.ts'

/** The latest connection or listing of one host. */
export interface HostSighting {
  /** `clientInfo.name` and `version`; empty: absent. */
  readonly name: string
  readonly version: string
  readonly revision: string
  readonly transport: 'stdio' | 'http' | 'sse'
  /** The endpoint: of a toolset, or of one server. */
  readonly toolset: string | undefined
  readonly server: string | undefined
  /** Number of tools listed; `undefined`: none were listed on this connection. */
  readonly tools: number | undefined
  /** Wall clock in milliseconds. */
  readonly atMs: number
}

/** A host that connects or lists tools. */
export interface Sighted {
  readonly clientInfo: unknown
  readonly revision: string
  readonly transport: HostSighting['transport']
  readonly scope: Scope
}

const SLOTS = 256
/** An unchanged sighting is not written again within this time. */
const REPEAT_MS = 2_000
const MAX_NAME_LENGTH = 128
const FOLDER = 'hosts'

export class HostSightings implements AsyncDisposable {
  readonly #folder: string
  readonly #failed: (error: unknown) => void
  /** By file: the latest sightings, and those not written yet. */
  readonly #known = new Map<string, HostSighting>()
  readonly #unwritten = new Map<string, HostSighting>()
  #writing: Promise<void> | undefined
  #isOver = false

  /** `failed` is called with the first write error; after it no sighting is written. */
  constructor(stateDir: string, failed: (error: unknown) => void) {
    this.#folder = join(stateDir, FOLDER)
    this.#failed = failed
  }

  /** Records a sighting; its file is written later. `tools`: number of tools listed now. */
  record({ clientInfo, revision, transport, scope }: Sighted, tools: number | undefined): void {
    const sighting: HostSighting = {
      name: textOf(memberOf(clientInfo, 'name')),
      version: textOf(memberOf(clientInfo, 'version')),
      revision,
      transport,
      toolset: scope.toolset,
      server: scope.server,
      tools,
      atMs: Date.now(),
    }
    const file = fileOf(sighting.name)
    const before = this.#known.get(file)
    if (before !== undefined && isRepeated(before, sighting)) return
    this.#known.set(file, sighting)
    this.#unwritten.set(file, sighting)
    if (!this.#isOver) this.#writing ??= this.#writeAll()
  }

  /** Resolves when the last write has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    try {
      for (const [file, sighting] of this.#unwritten) {
        this.#unwritten.delete(file)
        await this.#write(file, sighting)
      }
    } catch (error) {
      this.#isOver = true
      this.#failed(error)
    } finally {
      this.#writing = undefined
    }
  }

  async #write(file: string, sighting: HostSighting): Promise<void> {
    makeFolder(this.#folder)
    const temporary = join(this.#folder, `${file}.${process.pid}.new`)
    await writeFile(temporary, `${JSON.stringify(sighting)}\n`, { mode: 0o600 })
    await rename(temporary, join(this.#folder, file))
  }
}

/** Resolves with the sightings since `sinceMs` (wall clock), latest first. */
export const readSightings = async (stateDir: string, sinceMs: number): Promise<readonly HostSighting[]> => {
  const folder = join(stateDir, FOLDER)
  const names = await readdir(folder).catch(() => [])
  const all = await Promise.all(names.filter((name) => name.endsWith('.json')).map((name) => readSighting(join(folder, name))))
  return all
    .filter((sighting) => sighting !== undefined)
    .filter(({ atMs }) => atMs >= sinceMs)
    .toSorted((a, b) => b.atMs - a.atMs)
}

const readSighting = (file: string): Promise<HostSighting | undefined> =>
  readFile(file, 'utf8')
    .then((text) => parseOwnJson<HostSighting>(text))
    .catch(() => undefined)

const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_NAME_LENGTH) : '')

const fileOf = (name: string): string => `${createHash('sha256').update(name).digest().readUInt32BE(0) % SLOTS}.json`

/** Whether `now` repeats `before` within `REPEAT_MS`. A new connection without a listing does not replace a listing. */
const isRepeated = (before: HostSighting, now: HostSighting): boolean =>
  now.atMs - before.atMs < REPEAT_MS &&
  before.name === now.name &&
  before.version === now.version &&
  before.revision === now.revision &&
  before.transport === now.transport &&
  before.toolset === now.toolset &&
  before.server === now.server &&
  (before.tools === now.tools || now.tools === undefined)

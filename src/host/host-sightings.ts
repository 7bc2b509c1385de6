/**
 * The hosts that connected, by what they say of themselves, and how many tools each was listed. Kept in the state folder, where
 * `trunkline connect` looks for the first request of the host that it has entered us in: several processes may serve one
 * configuration, and any of them may be the one that the host reaches.
 *
 * Names come from hosts, so their number is bounded: a name has one of `SLOTS` files, and the later of two that share one replaces it.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Scope } from '../rpc/call.ts'
import { makeFolder } from '../make-folder.ts'
import { memberOf } from '../values/json-object.ts'
import { parseOwnJson } from '../values/own-json.ts'

/** What one host did last. */
export interface HostSighting {
  /** `clientInfo.name` and `version`; empty where it has none. */
  readonly name: string
  readonly version: string
  readonly revision: string
  readonly transport: 'stdio' | 'http' | 'sse'
  /** Its endpoint: of a toolset, or of one server. */
  readonly toolset: string | undefined
  readonly server: string | undefined
  /** How many tools it was listed; `undefined`: it has not listed them in this connection. */
  readonly tools: number | undefined
  /** Wall clock in milliseconds. */
  readonly atMs: number
}

/** A host as it connects, or lists tools. */
export interface Sighted {
  readonly clientInfo: unknown
  readonly revision: string
  readonly transport: HostSighting['transport']
  readonly scope: Scope
}

const SLOTS = 256
/** A host that only repeats itself is written again after this time. */
const REPEAT_MS = 2_000
const MAX_NAME_LENGTH = 128
const FOLDER = 'hosts'

export class HostSightings implements AsyncDisposable {
  readonly #folder: string
  readonly #failed: (error: unknown) => void
  /** The last one of each file, and those that are not written yet. */
  readonly #known = new Map<string, HostSighting>()
  readonly #unwritten = new Map<string, HostSighting>()
  #writing: Promise<void> | undefined
  #isOver = false

  /** `failed` is called once, with why a sighting could not be kept; the next ones are not tried. */
  constructor(stateDir: string, failed: (error: unknown) => void) {
    this.#folder = join(stateDir, FOLDER)
    this.#failed = failed
  }

  /** `tools`: how many it is listed now. Returns at once; the file is written later. */
  see({ clientInfo, revision, transport, scope }: Sighted, tools: number | undefined): void {
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

  /** Nothing is written any more once it resolves. */
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

/** The hosts that were seen since `sinceMs` (wall clock), the latest first. */
export const readSightings = async (stateDir: string, sinceMs: number): Promise<readonly HostSighting[]> => {
  const folder = join(stateDir, FOLDER)
  const names = await readdir(folder).catch(() => [])
  const all = await Promise.all(names.filter((name) => name.endsWith('.json')).map((name) => readSighting(join(folder, name))))
  return all
    .filter((sighting) => sighting !== undefined)
    .filter(({ atMs }) => atMs >= sinceMs)
    .toSorted((a, b) => b.atMs - a.atMs)
}

const readSighting = async (file: string): Promise<HostSighting | undefined> => {
  try {
    return parseOwnJson<HostSighting>(await readFile(file, 'utf8'))
  } catch {
    return undefined
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_NAME_LENGTH) : '')

const fileOf = (name: string): string => `${createHash('sha256').update(name).digest().readUInt32BE(0) % SLOTS}.json`

/** The same as a moment ago; a host that has just listed tools and connects again says nothing new. */
const isRepeated = (before: HostSighting, now: HostSighting): boolean =>
  now.atMs - before.atMs < REPEAT_MS &&
  before.name === now.name &&
  before.version === now.version &&
  before.revision === now.revision &&
  before.transport === now.transport &&
  before.toolset === now.toolset &&
  before.server === now.server &&
  (before.tools === now.tools || now.tools === undefined)

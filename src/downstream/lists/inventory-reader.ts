/**
 * Reads everything a server offers, all pages of all lists, within the caps, as bytes (BRIDGING 3.18, 5.4; T-29). A list that
 * fails stays as it was known, with a warning; it never takes the others along.
 */
import { isDeepStrictEqual } from 'node:util'
import { asError } from '../../values/as-error.ts'
import { digestInventory } from '../../catalog/digest.ts'
import { LIST_KINDS, perKind } from '../../catalog/inventory.ts'
import type { Entry, Freshness, Inventory, LeftOut, ListKind } from '../../catalog/inventory.ts'
import type { Declared, Link } from '../../era/server/link.ts'
import { ServerError } from '../../rpc/call.ts'
import { memberOf } from '../../values/json-object.ts'
import { isDeeperThan } from '../../wire/json/deep-value.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import { cleanLabel } from '../../wire/protocol/label.ts'
import { readParamHeaders, withoutBadAnnotations } from '../../wire/headers/param-headers.ts'
import { Payload } from '../../wire/message/payload.ts'
import { Scanner } from '../../wire/json/scan.ts'
import type { ServerLimits } from '../options.ts'

interface ListRow {
  readonly method: string
  /** Member of the result that holds the entries. */
  readonly member: string
  /** Member of an entry that names it. */
  readonly field: string
  /** Capability that promises the list. One without it is asked for once (B287). */
  readonly capability: string
}

const LISTS: Readonly<Record<ListKind, ListRow>> = {
  tools: { method: 'tools/list', member: 'tools', field: 'name', capability: 'tools' },
  resources: { method: 'resources/list', member: 'resources', field: 'uri', capability: 'resources' },
  templates: { method: 'resources/templates/list', member: 'resourceTemplates', field: 'uriTemplate', capability: 'resources' },
  prompts: { method: 'prompts/list', member: 'prompts', field: 'name', capability: 'prompts' },
}

export interface ReadingOptions {
  readonly limits: ServerLimits
  /** Lifetime of a legacy server's list, with and without its announcing changes. */
  readonly legacyTtlMs: number
  readonly legacyPollMs: number
  /** Lifetime of a list whose modern server gives none: as long as it is not read again for hosts that ask. */
  readonly freshMs: number
  readonly nowMs: () => number
  /** Whether JSON text holds a credential of the configuration. */
  readonly hasCredential: (json: string) => boolean
  /** Hears of each limit that the lists exceed. */
  readonly reached: (option: string) => void
  /** Hears of each list that failed. */
  readonly failed?: (error: unknown) => void
  /** What was read before, for lists that fail now. */
  readonly known: Inventory | undefined
  /** No capability names the list that is read: it may well not be there. */
  readonly isUndeclared?: boolean
  /** What is declared while reading, where it is not what the gateway always declares. */
  readonly declared?: Declared
}

interface ReadList {
  readonly entries: readonly Entry[]
  readonly freshness: Freshness
}

export const readInventory = async (link: Link, options: ReadingOptions): Promise<Inventory> => {
  const leftOut: LeftOut[] = []
  const warnings: string[] = []
  const failed: unknown[] = []
  let readBytes = 0
  const took = (bytes: number): void => void (readBytes += bytes)
  const startedMs = options.nowMs()
  const missing = (kind: ListKind): ReadList => ({ entries: options.known?.lists[kind] ?? [], freshness: STALE })
  const readDeclared = (kind: ListKind): Promise<ReadList> =>
    readList(link, kind, options, { leftOut, warnings, took }).catch(async (error: unknown) => {
      if (!(await isOfThisList(error, link))) throw error
      options.failed?.(error)
      failed.push(error)
      warnings.push(`${LISTS[kind].method} failed: ${asError(error).message}`)
      return missing(kind)
    })
  const declared = LIST_KINDS.filter((kind) => link.capabilities[LISTS[kind].capability] !== undefined)
  const known = absentBefore(link, options.known)
  const undeclared = LIST_KINDS.filter((kind) => !declared.includes(kind) && !known.includes(kind))
  // Asked at the same time, but nothing that the server does offer waits long for what it never said it has.
  const extra = undeclared.map((kind) => readUndeclared(link, kind, options, took))
  const read = await Promise.all(declared.map(readDeclared))
  if (declared.length > 0 && failed.length === declared.length && failed.every(isOutage)) throw failed[0]
  const waitMs = declared.length === 0 ? SILENT_MS : Math.max(MIN_EXTRA_MS, options.nowMs() - startedMs)
  const found = await Promise.all(extra.map((list) => within(waitMs, list)))
  const lists = perKind<ReadList>(
    (kind) =>
      read[declared.indexOf(kind)] ??
      found[undeclared.indexOf(kind)] ?? { entries: [], freshness: ownFreshness(link, LISTS[kind], options) },
  )
  const inventory = {
    revision: link.revision,
    capabilities: link.capabilities,
    instructions: withoutCredential(link.instructions, options, warnings),
    ...(link.serverInfo !== undefined && { serverInfo: link.serverInfo }),
    lists: perKind((kind) => lists[kind].entries),
    freshness: perKind((kind) => lists[kind].freshness),
    leftOut,
    findings: [],
    warnings,
  }
  const absent = [...known, ...undeclared.filter((_, at) => found[at] === undefined)]
  return { ...inventory, absent, readBytes, digest: digestInventory(inventory) }
}

/** How long lists that no capability names may take where others were read, at least; and where there are no others. */
const MIN_EXTRA_MS = 1_000
const SILENT_MS = 5_000

/** The lists that this server was asked for before and does not have, though no capability says so. */
const absentBefore = (link: Link, known: Inventory | undefined): readonly ListKind[] => {
  const isSame = known?.revision === link.revision && isDeepStrictEqual(known.capabilities, link.capabilities)
  return isSame ? (known.absent ?? []) : []
}

/** A list that no capability names (B287); `undefined`: the server has none. Never rejects. */
const readUndeclared = (
  link: Link,
  kind: ListKind,
  options: ReadingOptions,
  took: Notes['took'],
): Promise<ReadList | undefined> =>
  readList(link, kind, { ...options, isUndeclared: true }, { leftOut: [], warnings: [], took }).catch(() => undefined)

/** `undefined` after `ms`. */
const within = async <T>(ms: number, work: Promise<T>): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)))
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const withoutCredential = (
  instructions: string | undefined,
  { hasCredential }: ReadingOptions,
  warnings: string[],
): string | undefined => {
  if (instructions === undefined || !hasCredential(JSON.stringify(instructions))) return instructions
  warnings.push(`its instructions are withheld: they ${CREDENTIAL.replace('contains', 'contain')}`)
  return undefined
}

/** What is told of a reading beside what was read. */
interface Notes {
  readonly leftOut: LeftOut[]
  readonly warnings: string[]
  /** Called with the bytes of each page. */
  readonly took: (bytes: number) => void
}

const STALE: Freshness = { receivedAtMs: 0, ttlMs: 0, scope: 'private' }

/** The server answered, though not with a list. Where it says so of every list, it is the server that is away. */
const OF_ONE_LIST: ReadonlySet<FailureKind> = new Set(['bad_response', 'too_large'])
const OUTAGES: ReadonlySet<FailureKind> = new Set(['downstream_error', 'not_found', 'rate_limited', 'timeout', 'session_expired'])

const isOutage = (error: unknown): boolean => error instanceof Failure && OUTAGES.has(error.kind)

/** Whether the others may be served without this list; what ends the link is another matter. A 404 in a session may mean either. */
const isOfThisList = async (error: unknown, link: Link): Promise<boolean> => {
  if (error instanceof ServerError) return true
  if (!(error instanceof Failure)) return false
  if (error.kind === 'session_expired') return (await link.ping?.(SILENT_MS)) === true
  return OF_ONE_LIST.has(error.kind) || OUTAGES.has(error.kind)
}

const readList = async (link: Link, kind: ListKind, options: ReadingOptions, notes: Notes): Promise<ReadList> => {
  const row = LISTS[kind]
  const { limits } = options
  const { leftOut, warnings, took } = notes
  const maxEntries = kind === 'tools' ? limits.maxTools : limits.maxEntries
  const entries: Entry[] = []
  const seen = new Set<string>()
  const cursors = new Set<string>()
  let freshness: Freshness = { receivedAtMs: options.nowMs(), ttlMs: 0, scope: 'private' }
  let cursor: string | undefined
  /** The first page as it came, while an empty cursor may lead back to it. */
  let first: Buffer | undefined
  for (let pages = 1; ; pages++) {
    const result = await fetchPage(link, row.method, cursor, options.declared)
    // An empty cursor is a cursor (B116); servers that write it for "none" answer it with their first page again (B282).
    if (cursor === '' && first !== undefined && result?.raw(row.member)?.equals(first) === true) return { entries, freshness }
    if (result === undefined && options.isUndeclared === true) throw new Failure('not_found', `${row.method} is not offered`)
    if (result === undefined) return { entries, freshness: ownFreshness(link, row, options) }
    took(result.raw(row.member)?.length ?? 0)
    freshness = pages === 1 ? freshnessOf(result, link, row, options) : oldest(freshness, freshnessOf(result, link, row, options))
    for (const entry of readPage(result, kind, row, link, options, notes)) {
      if (seen.has(entry.original)) {
        leftOut.push({ kind, name: entry.original, reason: 'listed twice by the server' })
        continue
      }
      seen.add(entry.original)
      if (entries.length < maxEntries) entries.push(entry)
    }
    const capName = kind === 'tools' ? 'limits.tools' : 'limits.entries'
    if (seen.size > maxEntries) {
      options.reached(capName)
      warnings.push(`${row.method}: ${maxEntries} entries served, more were offered (${capName})`)
      return { entries, freshness }
    }
    if (pages === 1) first = result.raw(row.member)
    cursor = result.text('nextCursor')
    if (cursor === undefined) return { entries, freshness }
    if (cursors.has(cursor)) {
      warnings.push(`${row.method}: the server repeated a cursor; ${entries.length} entries served`)
      return { entries, freshness }
    }
    cursors.add(cursor)
    if (pages >= limits.maxPages) {
      options.reached('limits.pages')
      warnings.push(`${row.method}: stopped after ${pages} pages with ${entries.length} entries (limits.pages)`)
      return { entries, freshness }
    }
  }
}

/** B113: a server that does not know a list offers nothing of it. */
const fetchPage = async (
  link: Link,
  method: string,
  cursor: string | undefined,
  declared: Declared | undefined,
): Promise<Payload | undefined> => {
  try {
    return await link.fetch(method, cursor === undefined ? {} : { cursor }, declared)
  } catch (error) {
    if (error instanceof ServerError && error.code === -32601) return undefined
    throw error
  }
}

const readPage = function* (
  result: Payload,
  kind: ListKind,
  row: ListRow,
  link: Link,
  { limits, reached, hasCredential }: ReadingOptions,
  { leftOut }: Notes,
): Generator<Entry> {
  const list = result.member(row.member)
  // Null is absent: Go writes an empty list so.
  if (list === undefined || result.bytes[list.start] === 0x6e) return
  if (result.bytes[list.start] !== 0x5b) throw new Failure('bad_response', `"${row.member}" is not a list`)
  for (const span of new Scanner(result.bytes, { start: list.start, strict: false }).elements()) {
    if (result.bytes[span.start] !== 0x7b) continue
    const entry = readEntry(Payload.at(result.bytes, span.start), kind, row, link, limits, reached)
    if ('reason' in entry) leftOut.push(entry)
    else if (hasCredential(entry.raw.toString()))
      leftOut.push({ kind, name: nameWithout(entry, hasCredential), reason: CREDENTIAL })
    else yield entry
  }
}

const CREDENTIAL = 'contains a credential of the configuration; change that credential, and ask who runs the server'

/** A name that holds the credential itself is not told either. */
const nameWithout = ({ original }: Entry, hasCredential: ReadingOptions['hasCredential']): string =>
  hasCredential(JSON.stringify(original)) ? '?' : original

const readEntry = (
  payload: Payload,
  kind: ListKind,
  row: ListRow,
  link: Link,
  limits: ServerLimits,
  reached: ReadingOptions['reached'],
): Entry | LeftOut => {
  const original = payload.text(row.field)
  if (original === undefined || original === '') return { kind, name: '?', reason: `has no ${row.field}` }
  const out = (reason: string): LeftOut => ({ kind, name: original, reason })
  const tooLarge = (member: string, limit: string, bytes: number): LeftOut => {
    reached(limit)
    return out(`${member} exceeds ${limit} (${bytes} bytes)`)
  }
  for (const name of ['title', 'description', row.field]) {
    const member = payload.member(name)
    if (member !== undefined && member.end - member.start > limits.maxTextBytes)
      return tooLarge(name, 'limits.max_text', limits.maxTextBytes)
  }
  for (const name of ['inputSchema', 'outputSchema']) {
    const member = payload.member(name)
    if (member !== undefined && member.end - member.start > limits.maxSchemaBytes)
      return tooLarge(name, 'limits.max_schema', limits.maxSchemaBytes)
  }
  // Every member: what lists, compares and stores definitions walks all of it.
  const deep = payload.members.find((member) => isDeeperThan(payload.bytes, member, limits.maxSchemaDepth))
  if (deep !== undefined) {
    reached('limits.max_schema_depth')
    return out(`${cleanLabel(deep.key).slice(0, 40)} exceeds limits.max_schema_depth (${limits.maxSchemaDepth} levels)`)
  }
  const raw = payload.bytes.subarray(payload.start, payload.end)
  const schema = kind === 'tools' ? payload.raw('inputSchema') : undefined
  if (schema === undefined) return { original, raw: Buffer.from(raw), paramHeaders: [] }
  const read = readParamHeaders(schema)
  if ('headers' in read) return { original, raw: Buffer.from(raw), paramHeaders: read.headers }
  if (link.era === 'modern' && link.transport === 'http') return out(`invalid x-mcp-header: ${read.invalid}`)
  return { original, raw: withoutBadAnnotations(raw), paramHeaders: [] }
}

const freshnessOf = (result: Payload, link: Link, row: ListRow, options: ReadingOptions): Freshness => {
  if (link.era === 'legacy') return ownFreshness(link, row, options)
  const ttlMs = Number(result.raw('ttlMs')?.toString() ?? 0)
  const scope = result.text('cacheScope') === 'public' ? 'public' : 'private'
  // A lifetime of 0 is not passed on: hosts would ask each time (B285).
  return { receivedAtMs: options.nowMs(), ttlMs: Number.isFinite(ttlMs) && ttlMs > 0 ? ttlMs : options.freshMs, scope }
}

/** The lifetime that we give a list whose server knows no such thing; none of those ever said that its lists are public (B292). */
const ownFreshness = (link: Link, row: ListRow, options: ReadingOptions): Freshness => {
  const announces = memberOf(link.capabilities[row.capability], 'listChanged') === true
  return { receivedAtMs: options.nowMs(), ttlMs: announces ? options.legacyTtlMs : options.legacyPollMs, scope: 'private' }
}

const oldest = (a: Freshness, b: Freshness): Freshness => ({
  receivedAtMs: Math.min(a.receivedAtMs, b.receivedAtMs),
  ttlMs: Math.min(a.ttlMs, b.ttlMs),
  scope: a.scope === 'private' || b.scope === 'private' ? 'private' : 'public',
})

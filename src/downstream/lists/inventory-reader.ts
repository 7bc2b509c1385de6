/**
 * Reads all pages of all lists of a server within the limits, as bytes (BRIDGING 3.18, 5.4; T-29). A list that fails keeps its known
 * entries, with a warning, and does not affect the others.
 */
import { isDeepStrictEqual } from 'node:util'
import { asError } from '../../values/as-error.ts'
import { checkShape } from '../../catalog/definition-shape.ts'
import { digestInventory } from '../../catalog/digest.ts'
import { LIST_KINDS, LISTS, perKind } from '../../catalog/inventory.ts'
import type { Entry, Finding, Freshness, Inventory, LeftOut, ListKind } from '../../catalog/inventory.ts'
import type { Declared, Link } from '../../era/server/link.ts'
import { ServerError } from '../../rpc/call.ts'
import { within } from '../../time/within.ts'
import { memberOf } from '../../values/json-object.ts'
import { isDeeperThan } from '../../wire/json/deep-value.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import { isCaseVariant } from '../../wire/protocol/deciding-keys.ts'
import { cleanLabel } from '../../wire/protocol/label.ts'
import { readParamHeaders, withoutBadAnnotations } from '../../wire/headers/param-headers.ts'
import { Payload } from '../../wire/message/payload.ts'
import { Scanner } from '../../wire/json/scan.ts'
import { attempt } from '../../values/attempt.ts'
import { ScanError } from '../../wire/json/scan-error.ts'
import type { Span } from '../../wire/json/scan.ts'
import type { ServerLimits } from '../options.ts'
import { NULL, OPEN_BRACKET } from '../../wire/json/tokens.ts'

type ListRow = (typeof LISTS)[ListKind]

export interface ReadingOptions {
  readonly limits: ServerLimits
  /** Lifetime of a legacy server's list, with and without `listChanged`. */
  readonly legacyTtlMs: number
  readonly legacyPollMs: number
  /** Lifetime of a modern server's list without one. */
  readonly freshMs: number
  readonly nowMs: () => number
  /** Whether JSON text contains a credential of the configuration. */
  readonly hasCredential: (json: string) => boolean
  /** Called with each limit that the lists exceed. */
  readonly reached: (option: string) => void
  /** Called with the error of each list that failed. */
  readonly failed?: (error: unknown) => void
  /** The inventory read before, for lists that fail now. */
  readonly known: Inventory | undefined
  /** No capability declares the list, so that it may not exist. */
  readonly isUndeclared?: boolean
  /** Declared capabilities while reading; absent: those of the gateway. */
  readonly declared?: Declared
}

/** One list that is being read, and where its notes go. */
interface Reading {
  readonly kind: ListKind
  readonly row: ListRow
  readonly link: Link
  readonly options: ReadingOptions
  readonly notes: Notes
}

interface ReadList {
  readonly entries: readonly Entry[]
  readonly freshness: Freshness
}

export const readInventory = async (link: Link, options: ReadingOptions): Promise<Inventory> => {
  const leftOut: LeftOut[] = []
  const findings: Finding[] = []
  const warnings: string[] = []
  const failed: unknown[] = []
  let readBytes = 0
  const took = (bytes: number): void => void (readBytes += bytes)
  const startedMs = options.nowMs()
  const missing = (kind: ListKind): ReadList => ({ entries: options.known?.lists[kind] ?? [], freshness: STALE })
  const readDeclared = (kind: ListKind): Promise<ReadList> =>
    readList({ kind, row: LISTS[kind], link, options, notes: { leftOut, findings, warnings, took } }).catch(
      async (error: unknown) => {
        if (!(await isOfThisList(error, link))) throw error
        options.failed?.(error)
        failed.push(error)
        warnings.push(`${LISTS[kind].method} failed: ${asError(error).message}`)
        return missing(kind)
      },
    )
  const declared = LIST_KINDS.filter((kind) => link.capabilities[LISTS[kind].capability] !== undefined)
  const known = absentBefore(link, options.known)
  const undeclared = LIST_KINDS.filter((kind) => !declared.includes(kind) && !known.includes(kind))
  // Requested at the same time; declared lists wait only briefly for undeclared ones.
  const extra = undeclared.map((kind) => readUndeclared(link, kind, options, took))
  const read = await Promise.all(declared.map(readDeclared))
  if (declared.length > 0 && failed.length === declared.length && failed.every(isOutage)) throw failed[0]
  const waitMs = declared.length === 0 ? SILENT_MS : Math.max(MIN_EXTRA_MS, options.nowMs() - startedMs)
  const found = await Promise.all(extra.map((list) => within(waitMs, list)))
  for (const list of found) {
    leftOut.push(...(list?.leftOut ?? []))
    findings.push(...(list?.findings ?? []))
    warnings.push(...(list?.warnings ?? []))
  }
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
    findings,
    warnings,
  }
  const absent = [...known, ...undeclared.filter((_, at) => found[at] === undefined)]
  return { ...inventory, absent, readBytes, digest: digestInventory(inventory) }
}

/** Time limit of undeclared lists: at least this with declared lists, and without declared lists. */
const MIN_EXTRA_MS = 1_000
const SILENT_MS = 5_000

/** The undeclared lists that the server is known not to have (B287). */
const absentBefore = (link: Link, known: Inventory | undefined): readonly ListKind[] => {
  const isSame = known?.revision === link.revision && isDeepStrictEqual(known.capabilities, link.capabilities)
  return isSame ? (known.absent ?? []) : []
}

/** Reads an undeclared list (B287), with its own notes; `undefined`: the server does not have it. Never rejects. */
const readUndeclared = (
  link: Link,
  kind: ListKind,
  options: ReadingOptions,
  took: Notes['took'],
): Promise<(ReadList & Notes) | undefined> => {
  const notes: Notes = { leftOut: [], findings: [], warnings: [], took }
  return readList({ kind, row: LISTS[kind], link, options: { ...options, isUndeclared: true }, notes }).then(
    (list) => ({ ...list, ...notes }),
    () => undefined,
  )
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

/** Notes collected while reading. */
interface Notes {
  readonly leftOut: LeftOut[]
  readonly findings: Finding[]
  readonly warnings: string[]
  /** Called with the bytes of each page. */
  readonly took: (bytes: number) => void
}

const STALE: Freshness = { receivedAtMs: 0, ttlMs: 0, scope: 'private' }

/** Failures of one list: the server answered, but not with a list. */
const OF_ONE_LIST: ReadonlySet<FailureKind> = new Set(['bad_response', 'too_large'])
const OUTAGES: ReadonlySet<FailureKind> = new Set(['downstream_error', 'not_found', 'rate_limited', 'timeout', 'session_expired'])

const isOutage = (error: unknown): boolean => error instanceof Failure && OUTAGES.has(error.kind)

/** Whether the error concerns this list only, not the link. A 404 in a session may mean either, which a ping decides. */
const isOfThisList = async (error: unknown, link: Link): Promise<boolean> => {
  if (error instanceof ServerError) return true
  if (!(error instanceof Failure)) return false
  if (error.kind === 'session_expired') return (await link.ping?.(SILENT_MS)) === true
  return OF_ONE_LIST.has(error.kind) || OUTAGES.has(error.kind)
}

const readList = async (reading: Reading): Promise<ReadList> => {
  const { kind, row, link, options } = reading
  const { limits } = options
  const { leftOut, warnings, took } = reading.notes
  const maxEntries = kind === 'tools' ? limits.maxTools : limits.maxEntries
  const entries: Entry[] = []
  const seen = new Set<string>()
  const cursors = new Set<string>()
  let freshness: Freshness = { receivedAtMs: options.nowMs(), ttlMs: 0, scope: 'private' }
  let cursor: string | undefined
  /** Elements so far, with those that are left out. */
  let looked = 0
  /** The first page, to which an empty cursor may lead back. */
  let first: Buffer | undefined
  for (let pages = 1; ; pages++) {
    const result = await fetchPage(link, row.method, cursor, options.declared)
    // An empty cursor is valid (B116), but some servers use it for "none" and answer it with their first page (B282).
    if (cursor === '' && first !== undefined && result?.raw(row.member)?.equals(first) === true) return { entries, freshness }
    if (result === undefined && options.isUndeclared === true) throw new Failure('not_found', `${row.method} is not offered`)
    if (result === undefined) return { entries, freshness: ownFreshness(link, row, options) }
    took(result.raw(row.member)?.length ?? 0)
    freshness = pages === 1 ? freshnessOf(result, link, row, options) : oldest(freshness, freshnessOf(result, link, row, options))
    const elements = elementsOf(result, row, 2 * maxEntries - looked)
    looked += elements.length
    for (const entry of readPage(result, elements, reading)) {
      if (seen.has(entry.original)) {
        leftOut.push({ kind, name: entry.original, reason: 'listed twice by the server' })
        continue
      }
      seen.add(entry.original)
      if (entries.length < maxEntries) entries.push(entry)
    }
    const capName = kind === 'tools' ? 'limits.tools' : 'limits.entries'
    if (seen.size > maxEntries || looked >= 2 * maxEntries) {
      options.reached(capName)
      warnings.push(`${row.method}: ${entries.length} entries served, more were offered (${capName})`)
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

/** `undefined`: the server does not know the method (B113). */
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

/** Thrown to end a walk early. Shared, since creating an error is expensive. */
const ENOUGH = new Error('enough')

/** The first `max` objects of a page. Other elements are skipped. */
const elementsOf = (result: Payload, row: ListRow, max: number): readonly Span[] => {
  const list = result.member(row.member)
  // Null counts as absent: Go encodes an empty list so.
  if (list === undefined || result.bytes[list.start] === NULL) return []
  if (result.bytes[list.start] !== OPEN_BRACKET) throw new Failure('bad_response', `"${row.member}" is not a list`)
  const found: Span[] = []
  const scanner = new Scanner(result.bytes, { start: list.start, strict: false })
  try {
    scanner.each(() => {
      if (found.push(scanner.skip()) >= max) throw ENOUGH
    })
  } catch (error) {
    if (error !== ENOUGH) throw error
  }
  return found
}

const readPage = function* (result: Payload, elements: readonly Span[], reading: Reading): Generator<Entry> {
  const { kind, options, notes } = reading
  const { hasCredential } = options
  const { leftOut } = notes
  for (const span of elements) {
    const entry = readEntry(Payload.at(result.bytes, span.start), reading)
    if ('reason' in entry) leftOut.push(entry)
    else if (hasCredential(entry.raw.toString()))
      leftOut.push({ kind, name: nameWithout(entry, hasCredential), reason: CREDENTIAL })
    else yield entry
  }
}

const CREDENTIAL = 'contains a credential of the configuration; change that credential, and ask who runs the server'

/** The name, or `?` if it contains the credential itself. */
const nameWithout = ({ original }: Entry, hasCredential: ReadingOptions['hasCredential']): string =>
  hasCredential(JSON.stringify(original)) ? '?' : original

const readEntry = (payload: Payload, { kind, row, link, options, notes }: Reading): Entry | LeftOut => {
  const { limits, reached } = options
  const raw = payload.bytes.subarray(payload.start, payload.end)
  // A message of a server is scanned leniently, but definitions are decoded, compared and stored.
  const invalid = invalidJson(raw)
  if (invalid !== undefined)
    return { kind, name: attempt(() => payload.text(row.field)) ?? '?', reason: `is not valid JSON: ${invalid}` }
  const original = payload.text(row.field)
  if (original === undefined || original === '') return { kind, name: '?', reason: `has no ${row.field}` }
  const out = (reason: string): LeftOut => ({ kind, name: original, reason })
  // A host in Go reads the last of them, which may be a name of another server (T-18).
  const names = payload.members.filter(({ key }) => key === row.field || isCaseVariant(key, row.field))
  if (names.length > 1) return out(`has several keys that a host may read as ${row.field}`)
  const tooLarge = (member: string, limit: string, bytes: number): LeftOut => {
    reached(limit)
    return out(`${member} exceeds ${limit} (${bytes} bytes)`)
  }
  const isOver = (name: string, maxBytes: number): boolean => {
    const member = payload.member(name)
    return member !== undefined && member.end - member.start > maxBytes
  }
  const text = ['title', 'description', row.field].find((name) => isOver(name, limits.maxTextBytes))
  if (text !== undefined) return tooLarge(text, 'limits.max_text', limits.maxTextBytes)
  const schemaName = ['inputSchema', 'outputSchema'].find((name) => isOver(name, limits.maxSchemaBytes))
  if (schemaName !== undefined) return tooLarge(schemaName, 'limits.max_schema', limits.maxSchemaBytes)
  // Every member, since definitions are compared and stored recursively.
  const deep = payload.members.find((member) => isDeeperThan(payload.bytes, member, limits.maxSchemaDepth))
  if (deep !== undefined) {
    reached('limits.max_schema_depth')
    return out(`${cleanLabel(deep.key).slice(0, 40)} exceeds limits.max_schema_depth (${limits.maxSchemaDepth} levels)`)
  }
  const { fault, notes: shapeNotes } = checkShape(raw, kind)
  if (fault !== undefined) return out(fault)
  for (const note of shapeNotes) notes.findings.push({ kind, name: original, note })
  const schema = kind === 'tools' ? payload.raw('inputSchema') : undefined
  if (schema === undefined) return { original, raw: Buffer.from(raw), paramHeaders: [] }
  const read = readParamHeaders(schema)
  if ('headers' in read) return { original, raw: Buffer.from(raw), paramHeaders: read.headers }
  if (link.era === 'modern' && link.transport === 'http')
    return { ...out(`invalid x-mcp-header: ${read.invalid}`), isInvalid: true }
  return { original, raw: withoutBadAnnotations(raw), paramHeaders: [] }
}

/** The error in the JSON text; `undefined`: it is valid. */
const invalidJson = (raw: Buffer): string | undefined => {
  try {
    new Scanner(raw).skip()
    return undefined
  } catch (error) {
    if (error instanceof ScanError) return error.message
    throw error
  }
}

const freshnessOf = (result: Payload, link: Link, row: ListRow, options: ReadingOptions): Freshness => {
  if (link.era === 'legacy') return ownFreshness(link, row, options)
  const ttlMs = Number(result.raw('ttlMs')?.toString() ?? 0)
  const scope = result.text('cacheScope') === 'public' ? 'public' : 'private'
  // A lifetime of 0 is replaced: hosts would request the list each time (B285).
  return { receivedAtMs: options.nowMs(), ttlMs: Number.isFinite(ttlMs) && ttlMs > 0 ? ttlMs : options.freshMs, scope }
}

/** The default lifetime of a list without one; private, since the server has not declared it public (B292). */
const ownFreshness = (link: Link, row: ListRow, options: ReadingOptions): Freshness => {
  const announces = memberOf(link.capabilities[row.capability], 'listChanged') === true
  const { legacyTtlMs, legacyPollMs } = options
  const ttlMs = announces ? legacyTtlMs : Math.min(legacyTtlMs, legacyPollMs)
  return { receivedAtMs: options.nowMs(), ttlMs, scope: 'private' }
}

const oldest = (a: Freshness, b: Freshness): Freshness => ({
  receivedAtMs: Math.min(a.receivedAtMs, b.receivedAtMs),
  ttlMs: Math.min(a.ttlMs, b.ttlMs),
  scope: a.scope === 'private' || b.scope === 'private' ? 'private' : 'public',
})

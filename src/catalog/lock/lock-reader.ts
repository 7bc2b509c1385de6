/**
 * Reads a lock file strictly: any change by a person, a merge or another program is refused with its place. Numbers keep their digits;
 * each definition must match its digest.
 */
import { canonical } from '../../wire/message/canonical.ts'
import { membersAt } from '../../wire/message/members.ts'
import { stringAt } from '../../wire/message/payload.ts'
import { Scanner } from '../../wire/json/scan.ts'
import { ScanError } from '../../wire/json/scan-error.ts'
import type { Member, Span } from '../../wire/json/scan.ts'
import { digestEntry } from '../digest.ts'
import { LOCK_KINDS } from './lock.ts'
import type { Locked, LockKind, ServerLock } from './lock.ts'
import { LOCK_VERSION } from './lock-text.ts'
import { LISTS } from '../inventory.ts'
import { OPEN_BRACE, QUOTE } from '../../wire/json/tokens.ts'

/** The reason why a lock file is refused, with its place. */
export class LockError extends Error {
  readonly line: number
  readonly column: number
  /** `servers.github.tools.search_code`; empty for the file as a whole. */
  readonly path: string
  constructor(message: string, path: string, place: Place) {
    super(message)
    this.name = 'LockError'
    this.path = path
    this.line = place.line
    this.column = place.column
  }
}

interface Place {
  readonly line: number
  readonly column: number
}

/** The servers of a lock file, in its order. Throws `LockError`. */
export const readLock = (text: string): ServerLock[] => {
  const reader = new Reader(text)
  const top = reader.members(reader.whole(), '')
  const version = top.find(({ key }) => key === 'version')
  const word = version === undefined ? 'none' : reader.text(version)
  if (version === undefined || word !== String(LOCK_VERSION))
    throw reader.error(`expected a lock file of version ${LOCK_VERSION}, found ${word}`, '', version ?? { start: 0, end: 0 })
  reader.only(top, ['version', 'servers'], '')
  const servers = top.find(({ key }) => key === 'servers')
  return servers === undefined ? [] : reader.members(servers, 'servers').map((server) => readServer(reader, server))
}

const readServer = (reader: Reader, server: Member): ServerLock => {
  const path = `servers.${server.key}`
  const members = reader.members(server, path)
  reader.only(members, [...LOCK_KINDS, 'apps'], path)
  const apps = members.find(({ key }) => key === 'apps')
  const inApps = apps === undefined ? [] : reader.members(apps, `${path}.apps`)
  reader.only(inApps, LOCK_KINDS, `${path}.apps`)
  const entries = (of: readonly Member[], at: string): Locked[] =>
    of.filter(({ key }) => key !== 'apps').flatMap((member) => readKind(reader, member, `${at}.${member.key}`))
  return { key: server.key, entries: entries(members, path), apps: entries(inApps, `${path}.apps`) }
}

const readKind = (reader: Reader, member: Member, path: string): Locked[] => {
  // Cast: `only` has refused other keys.
  const kind = member.key as LockKind
  if (kind === 'instructions') return [readEntry(reader, member, kind, '', path)]
  return reader.members(member, path).map((entry) => readEntry(reader, entry, kind, entry.key, `${path}.${entry.key}`))
}

const readEntry = (reader: Reader, entry: Member, kind: LockKind, name: string, path: string): Locked => {
  const members = reader.members(entry, path)
  reader.only(members, ['digest', 'definition'], path)
  const memberAt = (key: string): Member => {
    const found = members.find((member) => member.key === key)
    if (found === undefined) throw reader.error(`has no ${key}`, path, entry)
    return found
  }
  const [digest, definition] = [memberAt('digest'), memberAt('definition')]
  const raw = Buffer.from(canonical(reader.bytes.subarray(definition.start, definition.end)))
  const said = /^sha256:([0-9a-f]{64})$/.exec(stringAt(reader.bytes, digest) ?? '')?.[1]
  if (said === undefined) throw reader.error('its digest is not "sha256:" and 64 digits', path, digest)
  if (digestEntry(raw) !== said)
    throw reader.error('its definition does not have its digest: one of them was edited', path, digest)
  if (!isNamed(raw, kind, name)) throw reader.error('its definition has another name', path, definition)
  return { kind, name, digest: said, definition: raw.toString() }
}

const isNamed = (raw: Buffer, kind: LockKind, name: string): boolean => {
  if (kind === 'instructions') return raw[0] === QUOTE
  const field = membersAt(raw, 0).findLast(({ key }) => key === LISTS[kind].field)
  return field !== undefined && stringAt(raw, field) === name
}

/** Whether a line continues in the next one: it ends with an unescaped backslash. */
const endsOpen = (line: string): boolean => {
  let at = line.length
  while (line[at - 1] === '\\') at--
  return (line.length - at) % 2 === 1
}

/** The file as JSON, with a mapping from offsets to lines of the file. */
class Reader {
  readonly bytes: Buffer
  /** Offsets at which a line of the file was joined to the line before it. */
  readonly #joints: readonly number[]

  constructor(text: string) {
    const lines = text.replaceAll('\r\n', '\n').split('\n')
    const mark = lines.findIndex((line) => /^(<{7}|={7}|>{7})( |$)/.test(line))
    if (mark !== -1) throw new LockError('holds marks of a merge that is not resolved', '', { line: mark + 1, column: 1 })
    const joints: number[] = []
    let json = ''
    let isJoined = false
    let bytes = 0
    for (const [at, line] of lines.entries()) {
      const isOpen = endsOpen(line)
      if (isJoined) joints.push(bytes)
      const own = isJoined ? line.replace(/^ +/, '') : /^ *#/.test(line) ? '' : line
      const part = isOpen ? own.slice(0, -1) : at === lines.length - 1 ? own : `${own}\n`
      json += part
      bytes += Buffer.byteLength(part)
      isJoined = isOpen
    }
    this.bytes = Buffer.from(json)
    this.#joints = joints
  }

  /** The value of the whole file. */
  whole(): Span {
    const scanner = new Scanner(this.bytes)
    try {
      const span = scanner.skip()
      if (scanner.peek() === -1) return span
    } catch (error) {
      if (!(error instanceof ScanError)) throw error
      throw this.error(`is no lock file: ${error.message}`, '', { start: error.offset, end: error.offset })
    }
    throw this.error('is no lock file: something stands behind its end', '', { start: scanner.position, end: scanner.position })
  }

  /** The members of an object; throws `LockError` for a repeated key. */
  members(span: Span, path: string): Member[] {
    if (this.bytes[span.start] !== OPEN_BRACE) throw this.error('expected a mapping', path, span)
    const found = membersAt(this.bytes, span.start)
    const seen = new Set<string>()
    for (const member of found) {
      if (seen.has(member.key))
        throw this.error(`${JSON.stringify(member.key)} stands here twice`, path, { start: member.keyStart, end: member.end })
      seen.add(member.key)
    }
    return found
  }

  only(members: readonly Member[], known: readonly string[], path: string): void {
    const unknown = members.find(({ key }) => !known.includes(key))
    if (unknown !== undefined)
      throw this.error(`unknown key ${JSON.stringify(unknown.key)}`, path, { start: unknown.keyStart, end: unknown.end })
  }

  text({ start, end }: Span): string {
    return this.bytes.toString('utf8', start, end)
  }

  error(message: string, path: string, { start }: Span): LockError {
    const before = this.bytes.subarray(0, start)
    const feeds = before.reduce((sum, byte) => sum + (byte === 0x0a ? 1 : 0), 0)
    const joined = this.#joints.filter((at) => at <= start).length
    return new LockError(message, path, { line: 1 + feeds + joined, column: start - before.lastIndexOf(0x0a) })
  }
}

/**
 * `x-mcp-header` annotations in schemas and their `Mcp-Param-*` headers ([2026-07-28 basic/transports/streamable-http], Custom Headers).
 * Schemas and arguments are read as bytes. Only the keyword `x-mcp-header` of a schema is an annotation, not a property or a default
 * value with that name.
 */
import { isCaseVariant } from '../protocol/deciding-keys.ts'
import { decodeHeaderValue, encodeHeaderValue, HEADER_NAME } from './header-value.ts'
import { cutMembers, edited, elementsAt, lastMember, membersAt } from '../message/members.ts'
import type { Edit } from '../message/members.ts'
import { stringAt } from '../message/payload.ts'
import { NULL, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../json/tokens.ts'
import { DATA_KEYWORDS, NAME_MAPS } from '../protocol/schema-keywords.ts'
import type { Member, Span } from '../json/scan.ts'

/** A tool parameter that is mirrored into the header `Mcp-Param-<name>`. `path`: the keys of `properties` that lead to it. */
export interface ParamHeader {
  readonly name: string
  readonly path: readonly string[]
  readonly type: 'string' | 'integer' | 'boolean'
}

const ANNOTATION = 'x-mcp-header'

/** Reads the annotations of an `inputSchema`. Returns the headers, or the first reason why the tool must not be listed (B220). */
export const readParamHeaders = (inputSchema: Buffer): { headers: readonly ParamHeader[] } | { invalid: string } => {
  const {
    headers,
    bad: [first],
  } = readAnnotations(inputSchema, 0)
  return first === undefined ? { headers } : { invalid: first.reason }
}

/** Returns the JSON of a tool without its invalid annotations; the same buffer if all are valid. */
export const withoutBadAnnotations = (raw: Buffer): Buffer => {
  const schema = lastMember(membersAt(raw, 0), 'inputSchema')
  if (schema === undefined) return raw
  const edits = readAnnotations(raw, schema.start).bad.flatMap((bad) => bad.edits)
  return edited(raw, edits)
}

/** The headers of one call, by name in lower case. `args`: its final `arguments`. Absent and null parameters and unsafe integers have none. */
export const headersFor = (headers: readonly ParamHeader[], args: Buffer | undefined): Record<string, string> => {
  const found: Record<string, string> = {}
  for (const header of headers) {
    const text = headerText(args, header.path)
    if (text !== undefined) found[`mcp-param-${header.name.toLowerCase()}`] = encodeHeaderValue(text)
  }
  return found
}

/**
 * Returns why the value of a mirrored parameter is ambiguous, as text of a -32600 error: a key on its path is repeated or also present
 * in another case, so that a server may read another value than the header has (T-20, T-21).
 */
export const ambiguousParam = (headers: readonly ParamHeader[], args: Buffer): string | undefined => {
  for (const { path } of headers) {
    let value: Span | undefined = { start: 0, end: args.length }
    for (const name of path) {
      const members: readonly Member[] = value === undefined ? [] : membersAt(args, value.start)
      const [first, ...others] = members.filter(({ key }) => key === name)
      const variant = members.find(({ key }) => isCaseVariant(key, name))
      if (variant !== undefined)
        return `the argument ${JSON.stringify(variant.key)} differs from ${JSON.stringify(name)} only in case`
      if (others.length > 0) return `the argument ${JSON.stringify(name)} is repeated`
      value = first
    }
  }
  return undefined
}

/**
 * Compares the `Mcp-Param-*` headers of a request (names in lower case) with its arguments. Returns the text of a -32020 error, or
 * `undefined`. A parameter that is absent or null must have no header (BRIDGING 5.1 row 15).
 */
export const checkParamHeaders = (
  headers: readonly ParamHeader[],
  args: Buffer | undefined,
  requestHeaders: Readonly<Record<string, string | string[] | undefined>>,
): string | undefined => {
  for (const { name, path, type } of headers) {
    const text = headerText(args, path)
    const field = `Mcp-Param-${name}`
    const sent = requestHeaders[field.toLowerCase()]
    if (text === undefined) {
      if (sent !== undefined && isMissing(args, path))
        return `the header ${field} is sent without the parameter ${path.join('.')}`
      continue
    }
    if (sent === undefined) return `the header ${field} is missing`
    const decoded = typeof sent === 'string' ? decodeHeaderValue(sent) : undefined
    if (decoded === undefined) return `the header ${field} cannot be decoded`
    const isEqual =
      decoded === text || (type === 'integer' && /^-?\d+(?:\.\d+)?$/.test(decoded) && Number(decoded) === Number(text))
    if (!isEqual) return `the header ${field} differs from the parameter ${path.join('.')}`
  }
  return undefined
}

const valueAt = (args: Buffer | undefined, path: readonly string[]): Span | undefined => {
  let value: Span | undefined = args && { start: 0, end: args.length }
  for (const key of path) value = value && args && lastMember(membersAt(args, value.start), key)
  return value
}

/** Whether the parameter is absent or null. */
const isMissing = (args: Buffer | undefined, path: readonly string[]): boolean => {
  const value = valueAt(args, path)
  return value === undefined || args?.[value.start] === NULL
}

/** The value at the path as header text, not yet encoded. */
const headerText = (args: Buffer | undefined, path: readonly string[]): string | undefined => {
  const value = valueAt(args, path)
  if (value === undefined || args === undefined) return undefined
  const first = args[value.start]
  if (first === QUOTE) return stringAt(args, value)
  const text = args.toString('latin1', value.start, value.end)
  if (first === 0x74 || first === 0x66) return text
  const number = first === NULL || first === OPEN_BRACE || first === OPEN_BRACKET ? Number.NaN : Number(text)
  if (!Number.isFinite(number) || (Number.isInteger(number) && !Number.isSafeInteger(number))) return undefined
  return String(number)
}

interface Annotations {
  readonly headers: ParamHeader[]
  readonly bad: { readonly reason: string; readonly edits: Edit[] }[]
}

const readAnnotations = (bytes: Buffer, start: number): Annotations => {
  const found: Annotations = { headers: [], bad: [] }
  const mayHold = bytes.includes(ANNOTATION) || bytes.includes('\\u')
  if (mayHold) readSchema(bytes, start, [], found)
  return found
}

/** Walks the schema at `start`. `path`: `undefined` if other keywords than `properties` lead to it. */
const readSchema = (bytes: Buffer, start: number, path: readonly string[] | undefined, found: Annotations): void => {
  for (const element of elementsAt(bytes, start)) readSchema(bytes, element.start, undefined, found)
  const members = membersAt(bytes, start)
  if (members.some((member) => member.key === ANNOTATION)) readAnnotation(bytes, members, path, found)
  for (const member of members) {
    if (member.key === ANNOTATION || DATA_KEYWORDS.has(member.key)) continue
    if (!NAME_MAPS.has(member.key)) readSchema(bytes, member.start, undefined, found)
    else
      for (const child of membersAt(bytes, member.start))
        readSchema(bytes, child.start, childPath(path, member.key, child.key), found)
  }
}

const childPath = (path: readonly string[] | undefined, keyword: string, key: string): readonly string[] | undefined =>
  path !== undefined && keyword === 'properties' ? [...path, key] : undefined

/** Adds the annotation of one schema to the headers, or to the invalid ones. */
const readAnnotation = (
  bytes: Buffer,
  members: readonly Member[],
  path: readonly string[] | undefined,
  found: Annotations,
): void => {
  const [first, ...others] = members.filter((member) => member.key === ANNOTATION)
  const typeMember = lastMember(members, 'type')
  const type = typeMember && stringAt(bytes, typeMember)
  const name = first && stringAt(bytes, first)
  const refuse = (reason: string): void => {
    const place = path === undefined || path.length === 0 ? '' : ` of ${path.join('.')}`
    found.bad.push({
      reason: `${ANNOTATION}${place} ${reason}`,
      edits: cutMembers(members, (member) => member.key === ANNOTATION),
    })
  }
  if (path === undefined || path.length === 0) return refuse('stands where no chain of "properties" leads')
  if (others.length > 0) return refuse('is repeated')
  if (name === undefined || !HEADER_NAME.test(name)) return refuse('is not a header token')
  if (!isParamType(type)) return refuse(`needs the type string, integer or boolean, not ${type ?? 'none'}`)
  const isTaken = found.headers.some((header) => header.name.toLowerCase() === name.toLowerCase())
  if (isTaken) return refuse(`repeats the name "${name}"`)
  found.headers.push({ name, path, type })
}

const isParamType = (type: string | undefined): type is ParamHeader['type'] =>
  type === 'string' || type === 'integer' || type === 'boolean'

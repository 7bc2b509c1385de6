/**
 * The shape of definitions in lists, as the schema of the protocol says it ([2025-11-25 schema, Tool, Resource, ResourceTemplate, Prompt]).
 * The official SDKs for TypeScript and Python check a list as a whole: one definition of a wrong shape, and the host has no list of any
 * server. What breaks the shape is shown in another spelling that means the same, or without the broken optional member; a definition
 * without a usable required member is left out (decision 0191).
 */
import { cutMembers, elementsAt, membersAt } from '../wire/message/members.ts'
import type { Edit } from '../wire/message/members.ts'
import { stringAt } from '../wire/message/payload.ts'
import type { Member, Span } from '../wire/json/scan.ts'
import { NULL, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../wire/json/tokens.ts'
import { cleanLabel } from '../wire/protocol/label.ts'
import type { ListKind } from './inventory.ts'

type Plain = 'text' | 'flag' | 'number' | 'share' | 'time' | 'object' | 'texts' | 'roles' | 'theme' | 'support'
/** `schemas`: an object of JSON schemas. */
type Shape = Plain | 'schemas' | ObjectShape | { readonly each: ObjectShape }

interface ObjectShape {
  /** Known members; others may be anything. */
  readonly members: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  /** An input schema: `"type":"object"` is required, and means the same as no type, since arguments are always an object. */
  readonly isInput?: true
}

const ICONS: Shape = { each: { members: { src: 'text', mimeType: 'text', sizes: 'texts', theme: 'theme' }, required: ['src'] } }
const COMMON = { title: 'text', description: 'text', icons: ICONS, _meta: 'object' } as const
const SCHEMA = { $schema: 'text', properties: 'schemas', required: 'texts' } as const
const HINTS = {
  title: 'text',
  readOnlyHint: 'flag',
  destructiveHint: 'flag',
  idempotentHint: 'flag',
  openWorldHint: 'flag',
} as const
const RESOURCE: ObjectShape = {
  members: {
    ...COMMON,
    name: 'text',
    mimeType: 'text',
    size: 'number',
    annotations: { members: { audience: 'roles', priority: 'share', lastModified: 'time' } },
  },
  required: ['name'],
}

const SHAPES: Readonly<Record<ListKind, ObjectShape>> = {
  tools: {
    members: {
      ...COMMON,
      inputSchema: { members: SCHEMA, isInput: true },
      outputSchema: { members: SCHEMA },
      annotations: { members: HINTS },
      execution: { members: { taskSupport: 'support' } },
    },
    required: ['inputSchema'],
  },
  resources: RESOURCE,
  templates: RESOURCE,
  prompts: {
    members: {
      ...COMMON,
      arguments: {
        each: { members: { name: 'text', title: 'text', description: 'text', required: 'flag' }, required: ['name'] },
      },
    },
  },
}

export interface CheckedShape {
  /** Why the definition cannot be shown, as one clause. */
  readonly fault: string | undefined
  /** What gives it the right shape. */
  readonly edits: readonly Edit[]
  /** Optional members that are not shown, each as one clause. Null counts as absent, and is not told (B282). */
  readonly notes: readonly string[]
}

/** Checks one definition. Throws `ScanError` for invalid JSON. */
export const checkShape = (definition: Buffer, kind: ListKind): CheckedShape => {
  const edits: Edit[] = []
  const notes: string[] = []
  const fault = new Check(definition, edits, notes).object(0, SHAPES[kind], '')
  return { fault, edits, notes }
}

class Check {
  readonly #bytes: Buffer
  readonly #edits: Edit[]
  readonly #notes: string[]

  constructor(bytes: Buffer, edits: Edit[], notes: string[]) {
    this.#bytes = bytes
    this.#edits = edits
    this.#notes = notes
  }

  /** The fault of the object at `start`; `undefined`: with the edits it has the shape. */
  object(start: number, shape: ObjectShape, path: string): string | undefined {
    const members = membersAt(this.#bytes, start)
    const cut = new Set<Member>()
    for (const member of members) {
      const known = Object.hasOwn(shape.members, member.key) ? shape.members[member.key] : undefined
      if (known === undefined) continue
      const isNull = this.#bytes[member.start] === NULL
      const isRequired = shape.required?.includes(member.key) === true
      const fault = isNull ? `${path}${member.key} is null` : this.#value(member, known, `${path}${member.key}`)
      if (fault === undefined) continue
      if (isRequired) return fault
      if (!isNull) this.#notes.push(`${fault}; served without`)
      cut.add(member)
    }
    const missing = shape.required?.find((key) => members.every((member) => member.key !== key))
    if (missing !== undefined) return `has no ${path}${missing}`
    // Edits within a member that is cut would overlap with the cut.
    const cuts = cutMembers(members, (member) => cut.has(member))
    const kept = this.#edits.filter((edit) => !cuts.some(({ start: from, end }) => edit.start >= from && edit.end <= end))
    this.#edits.splice(0, Infinity, ...kept, ...cuts)
    return shape.isInput === true ? this.#input(start, members, members.length === cut.size) : undefined
  }

  #input(start: number, members: readonly Member[], isEmpty: boolean): string | undefined {
    const types = members.filter(({ key }) => key === 'type')
    for (const type of types) {
      if (this.#bytes[type.start] === NULL) this.#edits.push({ start: type.start, end: type.end, text: '"object"' })
      else if (stringAt(this.#bytes, type) !== 'object') return 'inputSchema is not of type object'
    }
    if (types.length > 0) return undefined
    // First, since a cut may begin at the same place.
    this.#edits.unshift({ start: start + 1, end: start + 1, text: isEmpty ? '"type":"object"' : '"type":"object",' })
    return undefined
  }

  #value(span: Span, shape: Shape, path: string): string | undefined {
    const first = this.#bytes[span.start]
    if (typeof shape === 'object') {
      if ('each' in shape) return first === OPEN_BRACKET ? this.#each(span, shape.each, path) : `${path} is not a list`
      return first === OPEN_BRACE ? this.object(span.start, shape, `${path}.`) : `${path} is not an object`
    }
    if (shape === 'schemas') return first === OPEN_BRACE ? this.#schemas(span, path) : `${path} is not an object`
    return IS[shape](this.#bytes, span) ? undefined : `${path} is not ${WHAT[shape]}`
  }

  #each(span: Span, shape: ObjectShape, path: string): string | undefined {
    for (const element of elementsAt(this.#bytes, span.start)) {
      const fault = this.#value(element, shape, `${path}[]`)
      if (fault !== undefined) return fault
    }
    return undefined
  }

  /** `true` and `false` are schemas, but not in the protocol up to 2025-11-25. */
  #schemas(span: Span, path: string): string | undefined {
    for (const { key, start, end } of membersAt(this.#bytes, span.start)) {
      if (this.#bytes[start] === OPEN_BRACE) continue
      const text = this.#bytes.toString('latin1', start, end)
      if (text !== 'true' && text !== 'false') return `${path}.${cleanLabel(key).slice(0, 40)} is not a schema`
      this.#edits.push({ start, end, text: text === 'true' ? '{}' : '{"not":{}}' })
    }
    return undefined
  }
}

const isText = (bytes: Buffer, { start }: Span): boolean => bytes[start] === QUOTE
const isNumber = (bytes: Buffer, { start }: Span): boolean => /[-\d]/.test(String.fromCharCode(bytes[start] ?? 0))
const isOneOf =
  (...words: readonly string[]) =>
  (bytes: Buffer, span: Span): boolean =>
    words.includes(stringAt(bytes, span) ?? '')
const isListOf =
  (isElement: (bytes: Buffer, element: Span) => boolean) =>
  (bytes: Buffer, { start }: Span): boolean =>
    bytes[start] === OPEN_BRACKET && elementsAt(bytes, start).every((element) => isElement(bytes, element))
/** ISO 8601 as the official SDKs take it, with a time zone. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

const IS: Readonly<Record<Plain, (bytes: Buffer, span: Span) => boolean>> = {
  text: isText,
  flag: (bytes, { start, end }) => /^(?:true|false)$/.test(bytes.toString('latin1', start, end)),
  number: isNumber,
  share: (bytes, span) => {
    const value = isNumber(bytes, span) ? Number(bytes.toString('latin1', span.start, span.end)) : -1
    return value >= 0 && value <= 1
  },
  time: (bytes, span) => TIME.test(stringAt(bytes, span) ?? ''),
  object: (bytes, { start }) => bytes[start] === OPEN_BRACE,
  texts: isListOf(isText),
  roles: isListOf(isOneOf('user', 'assistant')),
  theme: isOneOf('light', 'dark'),
  support: isOneOf('required', 'optional', 'forbidden'),
}

const WHAT: Readonly<Record<Plain, string>> = {
  text: 'a text',
  flag: 'true or false',
  number: 'a number',
  share: 'a number from 0 to 1',
  time: 'a time with its zone',
  object: 'an object',
  texts: 'a list of texts',
  roles: 'a list of user and assistant',
  theme: 'light or dark',
  support: 'required, optional or forbidden',
}

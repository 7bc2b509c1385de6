/**
 * A form for the input schema of a tool (the subset of JSON Schema 2020-12 that tools use), and the entered arguments. Values are
 * kept as texts and written as JSON text, so that no number loses its spelling. A schema outside the subset becomes a field for JSON.
 * Schemas come from servers: depth and number of fields are bounded, `$ref` is followed only inside the schema, and `pattern` is shown
 * but not executed, as an untrusted expression can take unbounded time.
 */
import { readJson, unquote, writeJson } from '../../values/json-tree.ts'
import { isJsonObject } from '../../values/json-object.ts'
import type { UnknownObject } from '../../values/json-object.ts'
import { ownValue } from '../../values/own-value.ts'

export interface Field {
  /** Keys from the arguments object to the field. */
  readonly path: readonly string[]
  readonly label: string
  readonly hint: string
  readonly isRequired: boolean
  readonly kind: 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'list' | 'group' | 'json'
  /** For a choice: its options as JSON texts. */
  readonly choices: readonly string[]
  /** For a group: its fields. */
  readonly fields: readonly Field[]
  /** For a list: the type of one line. */
  readonly item: 'text' | 'number' | 'integer' | 'boolean'
  /** Shown while nothing is entered. */
  readonly example: string
  readonly limits: Limits
}

interface Limits {
  readonly least?: number
  readonly most?: number
  readonly minLength?: number
  readonly maxLength?: number
}

/** Entered texts by the path of their field; absent and empty ones are left out of the arguments. */
export type Values = Readonly<Record<string, string>>

export interface Entered {
  /** JSON text of the arguments. */
  readonly json: string
  /** By the path of a field. */
  readonly problems: Readonly<Record<string, string>>
}

const MAX_DEPTH = 4
const MAX_FIELDS = 100
const MAX_REFS = 20

export const keyOfField = ({ path }: Pick<Field, 'path'>): string => JSON.stringify(path)

/** Fields of the arguments in the order of the schema; `undefined`: the schema does not describe an object, or one that is too large for a form. */
export const fieldsOf = (schema: unknown): readonly Field[] | undefined => {
  if (!isJsonObject(schema)) return undefined
  const root = resolve(schema, schema)
  if (root['type'] !== undefined && root['type'] !== 'object') return undefined
  const form: Form = { root: schema, fields: 0 }
  const fields = membersOf(root, form, [])
  return form.fields > MAX_FIELDS ? undefined : fields
}

/** The whole schema, and the number of fields so far: a schema that contains itself has any number. */
interface Form {
  readonly root: UnknownObject
  fields: number
}

const membersOf = (schema: UnknownObject, form: Form, path: readonly string[]): readonly Field[] => {
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {}
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
  const fields: Field[] = []
  for (const [name, property] of Object.entries(properties)) {
    if (++form.fields > MAX_FIELDS) break
    const resolved = isJsonObject(property) ? resolve(property, form.root) : {}
    fields.push(fieldOf(resolved, form, [...path, name], required.has(name)))
  }
  return fields
}

const fieldOf = (schema: UnknownObject, form: Form, path: readonly string[], isRequired: boolean): Field => {
  const text = (member: string): string => (typeof schema[member] === 'string' ? schema[member] : '')
  const number = (member: string): number | undefined => (typeof schema[member] === 'number' ? schema[member] : undefined)
  // Cast: the names are those of `Limits`.
  const limits = Object.fromEntries(
    Object.entries({
      least: number('minimum'),
      most: number('maximum'),
      minLength: number('minLength'),
      maxLength: number('maxLength'),
    }).filter(([, value]) => value !== undefined),
  ) as Limits
  const examples = Array.isArray(schema['examples']) ? schema['examples'] : []
  const example = schema['default'] ?? examples[0]
  const base = {
    path,
    label: text('title') || (path.at(-1) ?? ''),
    hint: [text('description'), text('format') && `format: ${text('format')}`, text('pattern') && `pattern: ${text('pattern')}`]
      .filter(Boolean)
      .join(' · '),
    isRequired,
    choices: [],
    fields: [],
    item: 'text' as const,
    example: example === undefined ? '' : typeof example === 'string' ? example : JSON.stringify(example),
    limits,
  }
  const choices = choicesOf(schema)
  if (choices !== undefined) return { ...base, kind: 'choice', choices }
  const type = typeOf(schema)
  if (type === 'string') return { ...base, kind: 'text' }
  if (type === 'number' || type === 'integer' || type === 'boolean') return { ...base, kind: type }
  if (type === 'array' && isJsonObject(schema['items'])) {
    const items = resolve(schema['items'], form.root)
    const item = typeOf(items)
    const isSimple =
      choicesOf(items) === undefined && (item === 'string' || item === 'number' || item === 'integer' || item === 'boolean')
    if (isSimple) return { ...base, kind: 'list', item: item === 'string' ? 'text' : item }
  }
  const isGroup = type === 'object' && isJsonObject(schema['properties']) && Object.keys(schema['properties']).length > 0
  if (isGroup && path.length < MAX_DEPTH) return { ...base, kind: 'group', fields: membersOf(schema, form, path) }
  return { ...base, kind: 'json' }
}

/** The single type, also if `null` is allowed as a second one. */
const typeOf = ({ type, anyOf, oneOf }: UnknownObject): string | undefined => {
  if (typeof type === 'string') return type
  if (Array.isArray(type)) {
    const others = type.filter((one) => one !== 'null')
    return others.length === 1 ? String(others[0]) : undefined
  }
  const several = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : []
  const types = new Set(several.filter(isJsonObject).map((one) => one['type']))
  types.delete('null')
  const [only] = types
  return types.size === 1 && typeof only === 'string' && only !== 'object' && only !== 'array' ? only : undefined
}

/** Maximum number of choices in a selection list. */
const MAX_CHOICES = 500

const choicesOf = (schema: UnknownObject): readonly string[] | undefined => {
  const choices = allChoicesOf(schema)
  return choices === undefined || choices.length > MAX_CHOICES || hasLostDigits(choices)
    ? undefined
    : choices.map((choice) => JSON.stringify(choice))
}

/** Whether a value contains a whole number that JavaScript cannot represent: it would be sent as another number. */
const hasLostDigits = (value: unknown): boolean =>
  typeof value === 'number'
    ? Number.isInteger(value) && !Number.isSafeInteger(value)
    : typeof value === 'object' && value !== null && Object.values(value).some(hasLostDigits)

const allChoicesOf = (schema: UnknownObject): readonly unknown[] | undefined => {
  if (Array.isArray(schema['enum'])) return schema['enum']
  if ('const' in schema) return [schema['const']]
  const several = Array.isArray(schema['oneOf']) ? schema['oneOf'] : Array.isArray(schema['anyOf']) ? schema['anyOf'] : []
  const isChoice = several.length > 0 && several.every((one) => isJsonObject(one) && 'const' in one)
  // Cast: `isChoice` has checked each.
  return isChoice ? several.map((one) => (one as UnknownObject)['const']) : undefined
}

/**
 * Resolves `#/…` inside the schema, and a schema with one form only: `allOf` of one, and `anyOf` or `oneOf` of one and `null`, as Python
 * servers write optional values. An unresolvable reference is an empty schema.
 */
const resolve = (schema: UnknownObject, root: UnknownObject): UnknownObject => {
  let found = schema
  let isNullable = false
  for (let step = 0; step < MAX_REFS; step++) {
    const { $ref: ref, ...own } = found
    if (typeof ref === 'string') {
      const target = targetOf(ref, root)
      if (target === undefined) return {}
      found = { ...target, ...own }
      continue
    }
    const { allOf, anyOf, oneOf, ...rest } = found
    const only = onlyOf(allOf, false) ?? onlyOf(anyOf, true) ?? onlyOf(oneOf, true)
    const isOne = [allOf, anyOf, oneOf].filter((one) => one !== undefined).length === 1
    if (only === undefined || !isOne || isTyped(rest))
      return isNullable && Array.isArray(found['enum']) ? { ...found, enum: [...new Set([...found['enum'], null])] } : found
    isNullable ||= only.isNullable
    found = { ...only.schema, ...rest }
  }
  return {}
}

const targetOf = (ref: string, root: UnknownObject): UnknownObject | undefined => {
  const parts = ref.startsWith('#/') ? ref.slice(2).split('/') : undefined
  const target = parts?.reduce<unknown>((value, part) => {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    return isJsonObject(value) ? ownValue(value, key) : undefined
  }, root)
  return isJsonObject(target) ? target : undefined
}

/** The only schema of a list, besides `null` if that may be there. */
const onlyOf = (
  list: unknown,
  mayBeNull: boolean,
): { readonly schema: UnknownObject; readonly isNullable: boolean } | undefined => {
  if (!Array.isArray(list)) return undefined
  const others = list.filter((one) => !(mayBeNull && isJsonObject(one) && one['type'] === 'null'))
  const [schema] = others
  return others.length === 1 && isJsonObject(schema) ? { schema, isNullable: others.length < list.length } : undefined
}

/** Whether the schema itself says what the value is. */
const isTyped = (schema: UnknownObject): boolean => ['type', 'properties', 'enum', 'const'].some((name) => name in schema)

/** The arguments as entered; `extra`: members that the schema does not name, as JSON texts. */
export const enter = (fields: readonly Field[], values: Values, extra: Values = {}): Entered => {
  const problems: Record<string, string> = {}
  const members = fields.flatMap((field) => {
    const json = jsonOf(field, values, problems)
    return json === undefined ? [] : [`${JSON.stringify(field.path.at(-1))}:${json}`]
  })
  const more = Object.entries(extra).map(([name, json]) => `${JSON.stringify(name)}:${json}`)
  return { json: `{${[...members, ...more].join(',')}}`, problems }
}

const jsonOf = (field: Field, values: Values, problems: Record<string, string>): string | undefined => {
  const key = keyOfField(field)
  if (field.kind === 'group') {
    // An optional group without any input is left out, even if it has required members.
    if (!field.isRequired && !hasInput(field, values)) return undefined
    const { json, problems: found } = enter(field.fields, values)
    Object.assign(problems, found)
    return json
  }
  const text = values[key] ?? ''
  if (text === '') {
    if (field.isRequired) problems[key] = 'is required'
    return undefined
  }
  const { json, problem } = read(field, text)
  if (problem !== undefined) problems[key] = problem
  return json
}

const hasInput = (field: Field, values: Values): boolean =>
  field.kind === 'group' ? field.fields.some((inner) => hasInput(inner, values)) : (values[keyOfField(field)] ?? '') !== ''

const read = (field: Field, text: string): { readonly json?: string; readonly problem?: string } => {
  const { kind, limits, item } = field
  if (kind === 'text') {
    const length = Array.from(text).length
    if (limits.minLength !== undefined && length < limits.minLength)
      return { problem: `needs at least ${limits.minLength} characters` }
    if (limits.maxLength !== undefined && length > limits.maxLength)
      return { problem: `has at most ${limits.maxLength} characters` }
    return { json: JSON.stringify(text) }
  }
  if (kind === 'number' || kind === 'integer') {
    const problem = numberProblem(kind, text.trim(), limits)
    return problem === undefined ? { json: text.trim() } : { problem }
  }
  if (kind === 'list') {
    const lines = text.split('\n').filter((line) => line.trim() !== '')
    const bad = lines.findIndex((line) =>
      item === 'text'
        ? false
        : item === 'boolean'
          ? !/^(?:true|false)$/.test(line.trim())
          : numberProblem(item, line.trim(), {}) !== undefined,
    )
    if (bad !== -1) return { problem: `line ${bad + 1} is not ${WORDS[item]}` }
    return { json: `[${lines.map((line) => (item === 'text' ? JSON.stringify(line) : line.trim())).join(',')}]` }
  }
  if (kind === 'json') {
    const node = readJson(text)
    return node === undefined ? { problem: 'is not JSON' } : { json: writeJson(node) }
  }
  return { json: text }
}

const WORDS = { text: 'a text', number: 'a number', integer: 'a whole number', boolean: 'true or false' } as const

/** The grammar of JSON; `Number` accepts more. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

const numberProblem = (kind: 'number' | 'integer', text: string, { least, most }: Limits): string | undefined => {
  if (!NUMBER.test(text)) return `is not ${WORDS[kind]}`
  const value = Number(text)
  if (kind === 'integer' && !Number.isInteger(value)) return 'is not a whole number'
  if (least !== undefined && value < least) return `must be at least ${least}`
  return most !== undefined && value > most ? `must be at most ${most}` : undefined
}

/** The form values for existing arguments. `undefined`: the form cannot represent them, so they are edited as JSON. */
export const leave = (
  fields: readonly Field[],
  json: string,
): { readonly values: Values; readonly extra: Values } | undefined => {
  const node = readJson(json)
  if (node?.kind !== 'object') return undefined
  const values: Record<string, string> = {}
  const extra: (readonly [name: string, json: string])[] = []
  const isHeld = node.members.every(([name, value]) => {
    const field = fields.find(({ path }) => path.at(-1) === name)
    if (field === undefined) {
      extra.push([name, writeJson(value)])
      return true
    }
    if (field.kind === 'group') {
      const inner = leave(field.fields, writeJson(value))
      if (inner === undefined || Object.keys(inner.extra).length > 0) return false
      Object.assign(values, inner.values)
      // An optional group without any input is left out.
      return field.isRequired || hasInput(field, inner.values)
    }
    const text = textOf(field, value)
    if (text !== undefined) values[keyOfField(field)] = text
    return text !== undefined
  })
  // Not assigned by name: `__proto__` is a name as well.
  return isHeld ? { values, extra: Object.fromEntries(extra) } : undefined
}

const textOf = (field: Field, value: NonNullable<ReturnType<typeof readJson>>): string | undefined => {
  if (field.kind === 'json') return writeJson(value)
  if (field.kind === 'list') {
    // No lines: the list would be left out.
    if (value.kind !== 'array' || value.items.length === 0) return undefined
    const items = value.items.map((item) => (item.kind === 'literal' ? textOfLiteral(field.item, item.raw) : undefined))
    return items.some((item) => item === undefined || item.includes('\n') || item.trim() === '') ? undefined : items.join('\n')
  }
  if (value.kind !== 'literal' || field.kind === 'group') return undefined
  if (field.kind === 'choice') return field.choices.includes(value.raw) ? value.raw : undefined
  return textOfLiteral(field.kind, value.raw) || undefined
}

/** `undefined`: the value is not of this type. */
const textOfLiteral = (kind: Field['item'], raw: string): string | undefined => {
  if (kind === 'text') return raw.startsWith('"') ? unquote(raw) : undefined
  return (kind === 'boolean' ? /^(?:true|false)$/ : NUMBER).test(raw) ? raw : undefined
}

/** The body of `POST /edit`: the changes, and the revision of the files for which they were planned. */
import { isJsonObject, isList, parseJsonObject } from '../../values/json-object.ts'
import { TEXTS } from './edit-changes.ts'
import type { ConfigurationChange, NewToolset, ToolChange } from './edit-changes.ts'
import { AdminRefusal } from '../refusal.ts'

export interface EditRequest {
  readonly changes: readonly ConfigurationChange[]
  /** Digest of the files for which the changes were planned; `undefined`: plan only. */
  readonly revision: string | undefined
}

/** Each change of a text is reviewed by a person. */
const MAX_CHANGES = 1_000

/** Throws `AdminRefusal`. */
export const readEdit = (body: string): EditRequest => {
  const expected = 'expected a JSON object with "changes", a list'
  const { changes, revision } = parseJsonObject(body) ?? {}
  if (!isList(changes) || changes.length === 0) throw wrong(expected)
  if (revision !== undefined && typeof revision !== 'string') throw wrong('revision must be that of a plan')
  if (changes.length > MAX_CHANGES) throw wrong(`at most ${MAX_CHANGES} changes at once, got ${changes.length}`)
  return { changes: changes.map((change, at) => readChange(new Fields(change, `changes[${at}]`))), revision }
}

const readChange = (fields: Fields): ConfigurationChange => {
  const kind = fields.text('kind')
  switch (kind) {
    case 'tool':
      return readToolChange(fields)
    case 'toolset':
      return { kind, toolset: fields.text('toolset'), tool: fields.text('tool'), member: fields.flag('member') }
    case 'new toolset':
      return readToolset(fields)
    case 'tag':
      return { kind, server: fields.text('server'), tag: fields.text('tag'), tagged: fields.flag('tagged') }
    default:
      throw fields.wrong('kind', 'must be "tool", "toolset", "new toolset" or "tag"')
  }
}

const readToolChange = (fields: Fields): ToolChange => {
  const texts: { [M in (typeof TEXTS)[number]]?: string | null } = {}
  for (const member of TEXTS) if (fields.has(member)) texts[member] = fields.isNull(member) ? null : fields.text(member)
  return {
    kind: 'tool',
    server: fields.text('server'),
    tool: fields.text('tool'),
    ...(fields.has('hidden') && { hidden: fields.flag('hidden') }),
    ...texts,
  }
}

const readToolset = (fields: Fields): NewToolset => {
  const budget = fields.has('budget') ? fields.inner('budget') : undefined
  return {
    kind: 'new toolset',
    toolset: fields.text('toolset'),
    tools: fields.texts('tools'),
    ...(fields.has('description') && { description: fields.text('description') }),
    ...(budget !== undefined && {
      budget: {
        ...(budget.has('tools') && { tools: budget.count('tools') }),
        ...(budget.has('tokens') && { tokens: budget.count('tokens') }),
      },
    }),
  }
}

/** The members of one JSON object; an invalid one is reported with its path. */
class Fields {
  readonly #members: Readonly<Record<string, unknown>>
  readonly #place: string

  constructor(value: unknown, place: string) {
    if (!isJsonObject(value)) throw wrong(`${place} must be an object`)
    this.#members = value
    this.#place = place
  }

  has(name: string): boolean {
    return this.#members[name] !== undefined
  }

  isNull(name: string): boolean {
    return this.#members[name] === null
  }

  text(name: string): string {
    const value = this.#members[name]
    if (typeof value === 'string' && value !== '') return value
    throw this.wrong(name, 'must be a text')
  }

  texts(name: string): readonly string[] {
    const value = this.#members[name]
    if (isList(value) && value.every((one): one is string => typeof one === 'string' && one !== '')) return value
    throw this.wrong(name, 'must be a list of texts')
  }

  flag(name: string): boolean {
    const value = this.#members[name]
    if (typeof value === 'boolean') return value
    throw this.wrong(name, 'must be true or false')
  }

  count(name: string): number {
    const value = this.#members[name]
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
    throw this.wrong(name, 'must be a whole number above 0')
  }

  inner(name: string): Fields {
    return new Fields(this.#members[name], `${this.#place}.${name}`)
  }

  wrong(name: string, what: string): AdminRefusal {
    return wrong(`${this.#place}.${name} ${what}`)
  }
}

const wrong = (message: string): AdminRefusal => new AdminRefusal(400, 'body', message)

/** The body of `POST /edit`: what is to be changed, and of which files it was planned. */
import { isList } from '../../values/json-object.ts'
import type { ConfigurationChange, NewToolset, ToolChange } from './edit-changes.ts'
import { AdminRefusal } from '../refusal.ts'

export interface EditRequest {
  readonly changes: readonly ConfigurationChange[]
  /** Digest of the files as they were planned; `undefined`: only plan it. */
  readonly revision: string | undefined
}

/** One request changes at most so much: each change of a text is looked at by a person. */
const MAX_CHANGES = 1_000

/** Throws `AdminRefusal`. */
export const readEdit = (body: string): EditRequest => {
  const { changes, revision } = objectOf(body)
  if (revision !== undefined && typeof revision !== 'string') throw wrong('revision must be the one of a plan')
  if (!isList(changes) || changes.length === 0) throw wrong('expected a JSON object with "changes", a list')
  if (changes.length > MAX_CHANGES) throw wrong(`at most ${MAX_CHANGES} changes are made at once, got ${changes.length}`)
  return { changes: changes.map((change, at) => readChange(new Fields(change, `changes[${at}]`))), revision }
}

const readChange = (said: Fields): ConfigurationChange => {
  const kind = said.text('kind')
  switch (kind) {
    case 'tool':
      return readToolChange(said)
    case 'toolset':
      return { kind, toolset: said.text('toolset'), tool: said.text('tool'), member: said.flag('member') }
    case 'new toolset':
      return readToolset(said)
    case 'tag':
      return { kind, server: said.text('server'), tag: said.text('tag'), tagged: said.flag('tagged') }
    default:
      throw said.wrong('kind', 'must be "tool", "toolset", "new toolset" or "tag"')
  }
}

const TEXTS = ['name', 'title', 'description'] as const

const readToolChange = (said: Fields): ToolChange => {
  const texts: { [M in (typeof TEXTS)[number]]?: string | null } = {}
  for (const member of TEXTS) if (said.has(member)) texts[member] = said.isNull(member) ? null : said.text(member)
  return {
    kind: 'tool',
    server: said.text('server'),
    tool: said.text('tool'),
    ...(said.has('hidden') && { hidden: said.flag('hidden') }),
    ...texts,
  }
}

const readToolset = (said: Fields): NewToolset => {
  const budget = said.has('budget') ? said.inner('budget') : undefined
  return {
    kind: 'new toolset',
    toolset: said.text('toolset'),
    tools: said.texts('tools'),
    ...(said.has('description') && { description: said.text('description') }),
    ...(budget !== undefined && {
      budget: {
        ...(budget.has('tools') && { tools: budget.count('tools') }),
        ...(budget.has('tokens') && { tokens: budget.count('tokens') }),
      },
    }),
  }
}

/** The members of one JSON object; what is not as it must be is told with its place. */
class Fields {
  readonly #members: Readonly<Record<string, unknown>>
  readonly #place: string

  constructor(value: unknown, place: string) {
    if (!isObject(value)) throw wrong(`${place} must be an object`)
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

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const objectOf = (json: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(json)
    if (isObject(value)) return value
  } catch {
    // It is told below.
  }
  throw wrong('expected a JSON object with "changes", a list')
}

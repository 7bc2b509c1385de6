/** What a search reads of a tool: its name, what it says of itself, what it takes. Definitions are a server's and may be anything. */
import { jsonObject } from '../../values/json-object.ts'
import type { UnknownObject } from '../../values/json-object.ts'
import type { CatalogServer, Exposed } from '../catalog.ts'

export interface ToolText {
  /** Without its server's prefix, and the title. */
  readonly name: string
  /** Key, prefix and display name of its server. */
  readonly server: string
  /** The first sentence of the description: what most authors say first is what the tool does. */
  readonly summary: string
  /** The rest of it; names and descriptions of arguments, nested ones too, and the words they may be set to. */
  readonly details: string
}

/** Characters of one text: a manual in a description must not make the index its size. */
const MAX_TEXT = 4_000
const SUMMARY_LENGTH = 200
/** Levels of nested objects whose arguments are read, and how many in all. */
const MAX_DEPTH = 3
const MAX_ARGUMENTS = 200

/** `definition`: the JSON as it is listed, so that what curation hides or rewords is not found by its old words. */
export const toolText = ({ server, exposed }: Exposed, definition: Buffer): ToolText => {
  const { title, annotations, description, inputSchema } = readObject(JSON.parse(definition.toString()))
  const prefix = `${server.prefix}__`
  const name = exposed.startsWith(prefix) ? exposed.slice(prefix.length) : exposed
  const whole = textOf(description).slice(0, MAX_TEXT).trimStart()
  const summary = summaryOf(whole)
  const said: string[] = []
  readSchema(inputSchema, 0, said)
  return {
    name: `${name} ${textOf(title) || textOf(readObject(annotations)['title'])}`,
    server: serverText(server),
    summary,
    details: `${whole.slice(summary.length)} ${said.join(' ').slice(0, MAX_TEXT)}`,
  }
}

export const serverText = ({ key, prefix, displayName }: CatalogServer): string => `${key} ${prefix} ${displayName}`

/** The first sentence or line of a description, as one line. */
export const summaryOf = (description: string): string => {
  const text = description.trimStart()
  const end = /[.!?:](?=\s)|\n/.exec(text)?.index ?? text.length
  return text.slice(0, Math.min(end + 1, SUMMARY_LENGTH)).trimEnd()
}

const readSchema = (schema: unknown, depth: number, said: string[]): void => {
  const { properties, items } = readObject(schema)
  if (depth > MAX_DEPTH) return
  if (items !== undefined) readSchema(items, depth + 1, said)
  for (const [name, value] of Object.entries(readObject(properties))) {
    if (said.length > MAX_ARGUMENTS) return
    const { description, enum: words } = readObject(value)
    const choices = Array.isArray(words) ? words.filter((word) => typeof word === 'string') : []
    said.push([name, textOf(description), ...choices].join(' '))
    readSchema(value, depth + 1, said)
  }
}

const readObject = (value: unknown): UnknownObject => jsonObject(value) ?? {}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

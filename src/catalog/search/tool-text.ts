/** The texts of a tool for the search: name, description, arguments. A definition comes from a server and may have any shape. */
import { jsonObject } from '../../values/json-object.ts'
import type { UnknownObject } from '../../values/json-object.ts'
import type { CatalogServer, Exposed } from '../catalog.ts'

export interface ToolText {
  /** The name without the server's prefix, and the title. */
  readonly name: string
  /** Key, prefix and display name of its server. */
  readonly server: string
  /** The first sentence of the description, in which most authors say what the tool does. */
  readonly summary: string
  /** The rest of the description; names, descriptions and enumerated values of arguments, nested ones included. */
  readonly details: string
}

/** Characters of one text, so that long descriptions do not fill the index. */
const MAX_TEXT = 4_000
const SUMMARY_LENGTH = 200
/** Levels of nested objects whose arguments are read, and arguments in all. */
const MAX_DEPTH = 3
const MAX_ARGUMENTS = 200

/** `definition`: the JSON as listed, so that texts replaced or hidden by curation are not found. */
export const toolText = ({ server, exposed }: Exposed, definition: Buffer): ToolText => {
  const { title, annotations, description, inputSchema } = readObject(JSON.parse(definition.toString()))
  const prefix = `${server.prefix}__`
  const name = exposed.startsWith(prefix) ? exposed.slice(prefix.length) : exposed
  const whole = textOf(description).slice(0, MAX_TEXT).trimStart()
  const summary = summaryOf(whole)
  const texts: string[] = []
  readSchema(inputSchema, 0, texts)
  return {
    name: `${name} ${textOf(title) || textOf(readObject(annotations)['title'])}`,
    server: serverText(server),
    summary,
    details: `${whole.slice(summary.length)} ${texts.join(' ').slice(0, MAX_TEXT)}`,
  }
}

export const serverText = ({ key, prefix, displayName }: CatalogServer): string => `${key} ${prefix} ${displayName}`

/** The first sentence or line of a description, as one line. */
export const summaryOf = (description: string): string => {
  const text = description.trimStart()
  const end = /[.!?:](?=\s)|[。！？]|\n/.exec(text)?.index ?? text.length
  return text.slice(0, Math.min(end + 1, SUMMARY_LENGTH)).trimEnd()
}

const readSchema = (schema: unknown, depth: number, texts: string[]): void => {
  const { properties, items } = readObject(schema)
  if (depth > MAX_DEPTH) return
  if (items !== undefined) readSchema(items, depth + 1, texts)
  for (const [name, value] of Object.entries(readObject(properties))) {
    if (texts.length >= MAX_ARGUMENTS) return
    const { description, enum: values } = readObject(value)
    const choices = Array.isArray(values) ? values.filter((choice) => typeof choice === 'string') : []
    texts.push([name, textOf(description), ...choices].join(' '))
    readSchema(value, depth + 1, texts)
  }
}

const readObject = (value: unknown): UnknownObject => jsonObject(value) ?? {}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Arguments of a tool as typed: `key=value` pairs, read by the tool's schema, or one JSON object. */
import { isJsonObject, parseJson, parseJsonObject } from '../../values/json-object.ts'
import { CommandError, EXIT } from './io.ts'

/** JSON text of one object. `schema`: the tool's `inputSchema`; without it a value that is valid JSON is JSON, else a text. */
export const readArguments = (pairs: readonly string[], json: string | undefined, schema: unknown): string => {
  if (json !== undefined) {
    if (pairs.length > 0) throw new CommandError(EXIT.usage, 'give the arguments as key=value or with --args, not both')
    if (parseJsonObject(json) === undefined)
      throw new CommandError(EXIT.usage, '--args is not a JSON object; write for example --args \'{"a":1}\'')
    return json
  }
  const types = typesOf(schema)
  const members = pairs.map((pair) => {
    const mark = pair.indexOf('=')
    if (mark < 1) throw new CommandError(EXIT.usage, `expected key=value, got "${pair}"; or give all of them with --args JSON`)
    const key = pair.slice(0, mark)
    return `${JSON.stringify(key)}:${asJson(key, pair.slice(mark + 1), types.get(key))}`
  })
  return `{${members.join(',')}}`
}

/** A number keeps the digits that were typed. */
const asJson = (key: string, text: string, type: string | undefined): string => {
  if (type === 'string') return JSON.stringify(text)
  const isJson = parseJson(text) !== undefined
  if (isJson) return text.trim()
  if (type === undefined) return JSON.stringify(text)
  throw new CommandError(EXIT.usage, `${key} is a ${type} by the tool's schema, got "${text}"; write it as JSON`)
}

const typesOf = (schema: unknown): ReadonlyMap<string, string> => {
  const properties = isJsonObject(schema) && isJsonObject(schema['properties']) ? schema['properties'] : {}
  return new Map(
    Object.entries(properties).flatMap(([key, property]) =>
      isJsonObject(property) && typeof property['type'] === 'string' ? [[key, property['type']] as const] : [],
    ),
  )
}

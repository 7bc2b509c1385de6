/** Arguments of a tool as typed: `key=value` pairs, read by the tool's schema, or one JSON object, with or without `--args`. */
import { isInteger, isJsonObject, isList, parseJson, parseJsonObject } from '../../values/json-object.ts'
import { CommandError, EXIT } from './io.ts'

/** JSON text of one object. `schema`: the tool's `inputSchema`; without it a value that is valid JSON is JSON, else a text. */
export const readArguments = (pairs: readonly string[], json: string | undefined, schema: unknown): string => {
  if (json !== undefined) {
    if (pairs.length > 0) throw new CommandError(EXIT.usage, 'give the arguments as key=value or with --args, not both')
    if (parseJsonObject(json) === undefined)
      throw new CommandError(EXIT.usage, '--args is not a JSON object; write for example --args \'{"a":1}\'')
    return json
  }
  const [first = ''] = pairs
  // As programs that print arguments show them; no tool has an argument whose name begins with a brace.
  if (pairs.length === 1 && first.trimStart().startsWith('{')) {
    if (parseJsonObject(first) === undefined) throw new CommandError(EXIT.usage, `the arguments are not a JSON object: ${first}`)
    return first
  }
  const types = typesOf(schema)
  const keys = new Set<string>()
  const members = pairs.map((pair) => {
    const mark = pair.indexOf('=')
    if (mark < 1) throw new CommandError(EXIT.usage, `expected key=value, got "${pair}"; or give all of them with --args JSON`)
    const key = pair.slice(0, mark)
    if (keys.has(key)) throw new CommandError(EXIT.usage, `${key} is given twice; write a list as ${key}='[1,2]'`)
    keys.add(key)
    return `${JSON.stringify(key)}:${asJson(key, pair.slice(mark + 1), types.get(key) ?? [])}`
  })
  return `{${members.join(',')}}`
}

/** A number keeps the digits that were typed. `types`: those that the schema allows; none: it does not say. */
const asJson = (key: string, text: string, types: readonly string[]): string => {
  const value = parseJson(text)
  const isText = types.includes('string') && !namesOf(value).some((name) => types.includes(name))
  if (isText || (value === undefined && types.length === 0)) return JSON.stringify(text)
  if (value !== undefined) return text.trim()
  throw new CommandError(
    EXIT.usage,
    `${key} is of type ${types.join(' or ')} by the tool's schema, got "${text}"; write it as JSON`,
  )
}

/** The names of JSON Schema for the type of a value other than a text. */
const namesOf = (value: unknown): readonly string[] => {
  if (value === undefined || typeof value === 'string') return []
  if (value === null) return ['null']
  if (typeof value === 'object') return [isList(value) ? 'array' : 'object']
  return [typeof value, ...(isInteger(value) ? ['integer'] : [])]
}

const typesOf = (schema: unknown): ReadonlyMap<string, readonly string[]> => {
  const properties = isJsonObject(schema) && isJsonObject(schema['properties']) ? schema['properties'] : {}
  return new Map(Object.entries(properties).map(([key, property]) => [key, typesIn(property)]))
}

/** Of `type`, and of the choices of `anyOf` and `oneOf`, by which an argument that may be null is described. */
const typesIn = (schema: unknown): readonly string[] => {
  if (!isJsonObject(schema)) return []
  const { type, anyOf, oneOf } = schema
  const own = [type].flat().filter((one) => typeof one === 'string')
  return [...own, ...[anyOf, oneOf].flatMap((choices) => (isList(choices) ? choices.flatMap(typesIn) : []))]
}

/**
 * A tool's definition as the configuration wants it: the server's own bytes, but for the members that were named. Of a schema only
 * the arguments at its root are edited.
 */
import { isList } from '../../values/json-object.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import type { ArgumentEdit, ToolEdit } from '../curation.ts'
import { overridden } from './override.ts'

/** The definition under all that `tools.<original>` says. */
export const curateDefinition = (raw: Buffer, edit: ToolEdit): Buffer => {
  const words = { title: edit.title?.text, description: edit.description?.text, annotations: edit.annotations?.hints }
  const worded = Object.values(words).every((said) => said === undefined) ? raw : overridden(raw, words)
  const isLimited = edit.result !== undefined
  if (edit.args.length === 0 && !isLimited) return worded
  const definition = Payload.at(worded)
  // What may be cut, or lie behind a link, promises no shape.
  if (isLimited) definition.delete('outputSchema')
  const schema = definition.object('inputSchema')
  if (schema !== undefined) editArguments(schema, edit.args)
  return join(definition.parts())
}

/** The arguments that a definition lists at its root. */
export const argumentsOf = (raw: Buffer): { readonly all: ReadonlySet<string>; readonly required: ReadonlySet<unknown> } => {
  const schema = Payload.at(raw).object('inputSchema')
  const required = schema?.value('required')
  return {
    all: new Set(schema?.object('properties')?.members.map(({ key }) => key)),
    required: new Set(isList(required) ? required : []),
  }
}

const editArguments = (schema: Payload, args: readonly ArgumentEdit[]): void => {
  const properties = schema.object('properties')
  for (const argument of args) if (properties?.has(argument.name) === true) editArgument(properties, argument)
  const spared = new Set<unknown>(args.filter(isSpared).map(({ name }) => name))
  const required = schema.value('required')
  if (!isList(required) || !required.some((name) => spared.has(name))) return
  const left = required.filter((name) => !spared.has(name))
  if (left.length === 0) schema.delete('required')
  else schema.set('required', JSON.stringify(left))
}

/** The caller need not send the argument. */
const isSpared = ({ value, isHidden, default: given }: ArgumentEdit): boolean =>
  value !== undefined || isHidden || given !== undefined

const editArgument = (properties: Payload, { name, value, isHidden, default: given, description }: ArgumentEdit): void => {
  if (isHidden) return properties.delete(name)
  const changed = { ...(description !== undefined && { description: JSON.stringify(description) }) }
  const edits = Object.entries({
    ...changed,
    ...(value !== undefined && { const: value }),
    ...(given !== undefined && { default: given }),
  })
  // A schema may also be `true`.
  if (properties.object(name) === undefined) properties.set(name, `{${edits.map(([key, json]) => `"${key}":${json}`).join(',')}}`)
  else for (const [key, json] of edits) properties.setIn(name, key, json)
}

/**
 * A tool's definition after curation: the server's bytes except the configured members. In a schema only the arguments at its root are
 * edited.
 */
import { isList } from '../../values/json-object.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { isPreset } from '../curation.ts'
import type { ArgumentEdit, ToolEdit } from '../curation.ts'
import { overridden } from './override.ts'

/** The definition with all edits of `tools.<original>`. */
export const curateDefinition = (raw: Buffer, edit: ToolEdit): Buffer => {
  const texts = { title: edit.title?.text, description: edit.description?.text, annotations: edit.annotations?.hints }
  const withTexts = Object.values(texts).every((text) => text === undefined) ? raw : overridden(raw, texts)
  const isLimited = edit.result !== undefined
  if (edit.args.length === 0 && !isLimited) return withTexts
  const definition = Payload.at(withTexts)
  // A result that is cut or replaced by a link does not match a schema.
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
  const preset = new Set<unknown>(args.filter(isPreset).map(({ name }) => name))
  const required = schema.value('required')
  if (!isList(required) || !required.some((name) => preset.has(name))) return
  const left = required.filter((name) => !preset.has(name))
  if (left.length === 0) schema.delete('required')
  else schema.set('required', JSON.stringify(left))
}

const editArgument = (properties: Payload, { name, value, isHidden, default: given, description }: ArgumentEdit): void => {
  if (isHidden) return properties.delete(name)
  const edits = Object.entries({
    ...(description !== undefined && { description: JSON.stringify(description) }),
    ...(value !== undefined && { const: value }),
    ...(given !== undefined && { default: given }),
  })
  // The schema of an argument may be `true`.
  if (properties.object(name) === undefined) properties.set(name, `{${edits.map(([key, json]) => `"${key}":${json}`).join(',')}}`)
  else for (const [key, json] of edits) properties.setIn(name, key, json)
}

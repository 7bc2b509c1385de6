/** The published JSON Schema (2020-12) of our own files, made from the schema that validates them. Texts with variables pass it. */
import { z } from 'zod'
import { fileSchema } from './file-schema.ts'

export const SCHEMA_ID = 'https://trunkline.dev/schema/v1.json'

/** A subset of JSON Schema: what ours is written in. */
export interface JsonSchema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, JsonSchema>>
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly const?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: boolean | JsonSchema
}

export const configurationJsonSchema = (): JsonSchema => {
  const { $schema, ...schema } = z.toJSONSchema(fileSchema, {
    io: 'input',
    // zod drops `default` of what a transformation follows, so the fields carry it under another name.
    override: ({ jsonSchema }) => {
      if (!('initial' in jsonSchema)) return
      jsonSchema.default = jsonSchema['initial']
      delete jsonSchema['initial']
    },
  })
  // Cast: `JsonSchema` names the members that are printed; zod's type is wider.
  return { $schema, $id: SCHEMA_ID, ...schema } as JsonSchema
}

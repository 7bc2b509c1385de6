/** The published JSON Schema (2020-12) of our files, generated from the schema that validates them. It accepts texts with variables. */
import { z } from 'zod'
import { fileSchema } from './file-schema.ts'

export const SCHEMA_ID = 'https://trunkline.dev/schema/v1.json'

/** The subset of JSON Schema that ours uses. */
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
    // zod drops `default` before a transformation, so the fields have it under another name.
    override: ({ jsonSchema }) => {
      // For `fillFrom`.
      delete jsonSchema['member']
      if (!('initial' in jsonSchema)) return
      jsonSchema.default = jsonSchema['initial']
      delete jsonSchema['initial']
    },
  })
  // Cast: `JsonSchema` names the members that are printed; zod's type is wider.
  return { $schema, $id: SCHEMA_ID, ...schema } as JsonSchema
}

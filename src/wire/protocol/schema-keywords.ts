/** The content of JSON Schema keywords, for walks that must distinguish keywords from names and values. */

/** Keywords whose value is data, never a schema. */
export const DATA_KEYWORDS: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

/** Keywords whose value maps names to schemas. */
export const NAME_MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])

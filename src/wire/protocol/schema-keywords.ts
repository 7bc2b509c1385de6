/** JSON Schema keywords by what their values are, for walks that must not take names or data for keywords. */

/** Keywords whose values are data, never schemas. */
export const DATA_KEYWORDS: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

/** Keywords whose values map names to schemas. */
export const NAME_MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])

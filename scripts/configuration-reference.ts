/** The tables of docs/configuration.md, from the JSON Schema: one section per mapping, one row per key. */
import type { JsonSchema } from '../src/config/schema/json-schema.ts'

/** What `defaults` shares with each server is described once, there. */
const DESCRIBED_ELSEWHERE = /^defaults\.(timeouts|limits|lifecycle)$/

export const renderReference = (schema: JsonSchema): string => {
  const kinds = Object.values(schema.$defs ?? {}).map(({ title, description }) => `- **${title}**: ${description}`)
  return [`## Kinds of values\n\n${kinds.join('\n')}`, ...sections('', schema, 'The file', schema)].join('\n\n')
}

const sections = (path: string, mapping: JsonSchema, title: string, root: JsonSchema): readonly string[] => {
  const properties = Object.entries(mapping.properties ?? {})
  const rows = properties.map(([key, value]) => row(key, join(path, key), value, root))
  const inner = properties.flatMap(([key, value]) => {
    const below = join(path, key)
    if (DESCRIBED_ELSEWHERE.test(below)) return []
    if (value.items?.properties) return sections(`${below}[]`, value.items, `\`${below}[]\``, root)
    if (value.properties) return sections(below, value, `\`${below}\``, root)
    const entries = typeof value.additionalProperties === 'object' ? value.additionalProperties : undefined
    return entries?.properties ? sections(`${below}.<key>`, entries, `\`${below}.<key>\``, root) : []
  })
  const table = ['| key | type | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
  return [`## ${title}`, ...(mapping.description && path ? [mapping.description] : []), table, ...inner]
}

const row = (key: string, path: string, value: JsonSchema, root: JsonSchema): string => {
  const initial =
    value.default === undefined ? '' : `\`${typeof value.default === 'string' ? value.default : JSON.stringify(value.default)}\``
  const type = DESCRIBED_ELSEWHERE.test(path) ? `as in \`servers.<key>.${key}\`` : typeName(value, root)
  return `| \`${key}\` | ${cell(type)} | ${cell(initial)} | ${cell(value.description ?? '')} |`
}

const typeName = (value: JsonSchema, root: JsonSchema): string => {
  if (value.$ref)
    return (root.$defs?.[value.$ref.replace('#/$defs/', '')]?.title ?? '').replace(/^[A-Z](?=[a-z])/, (letter) =>
      letter.toLowerCase(),
    )
  if (value.anyOf)
    return value.anyOf
      .filter((one) => !isVariable(one))
      .map((one) => typeName(one, root))
      .join(' or ')
  if (value.enum) return value.enum.map((word) => `\`${word}\``).join(', ')
  if (value.const) return `\`${value.const}\``
  if (value.type === 'integer' && value.minimum === undefined) return 'number'
  if (value.type === 'integer' || value.type === 'number')
    return value.minimum === value.maximum ? `\`${value.minimum}\`` : `${value.minimum} to ${value.maximum}`
  if (value.type === 'array') return `list of ${typeName(value.items ?? {}, root)}`
  if (value.type === 'object') {
    const entries = value.additionalProperties
    return typeof entries === 'object' && !entries.properties ? `mapping to ${typeName(entries, root)}` : 'mapping'
  }
  if (value.type === 'boolean') return '`true`, `false`'
  if (value.type === undefined) return 'any value'
  return Array.isArray(value.type) && value.type.includes('array') ? 'text, or list of texts' : 'text'
}

const isVariable = ({ type, pattern }: JsonSchema & { pattern?: string }) => type === 'string' && pattern === '\\$\\{'
const join = (path: string, key: string) => (path === '' ? key : `${path}.${key}`)
const cell = (text: string) => text.replaceAll('|', '\\|')

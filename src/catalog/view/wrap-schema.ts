/**
 * Wraps an `outputSchema` of a modern server whose root is not an object, for hosts that accept only object roots (2025-06-18,
 * 2025-11-25): `{"type":"object","properties":{"result":…},"required":["result"]}`, like the official TypeScript SDK (BRIDGING 3.3).
 * The schema's bytes stay, except local references, which start one level deeper.
 */
import type { OutputForm } from '../../era/host/projections.ts'
import { edited, elementsAt, lastMember, membersAt } from '../../wire/message/members.ts'
import type { Edit } from '../../wire/message/members.ts'
import { stringAt } from '../../wire/message/payload.ts'
import type { Member } from '../../wire/json/scan.ts'
import { DATA_KEYWORDS, NAME_MAPS } from '../../wire/protocol/schema-keywords.ts'
import { NULL } from '../../wire/json/tokens.ts'

const NEW_ROOT = '#/properties/result'

/** The form of a modern server's tool, by its definition; tools of legacy servers are always `plain`. */
export const outputFormOf = (definition: Buffer): OutputForm => {
  const schema = lastMember(membersAt(definition, 0), 'outputSchema')
  return schema === undefined ? 'by value' : formOf(definition.subarray(schema.start, schema.end))
}

/** `null` counts as absent (B282). */
const formOf = (schema: Buffer): OutputForm => {
  if (schema[0] === NULL) return 'by value'
  const type = lastMember(membersAt(schema, 0), 'type')
  return type !== undefined && stringAt(schema, type) === 'object' ? 'plain' : 'wrapped'
}

/** The wrapped schema; `undefined`: the root is an object. */
export const wrapOutputSchema = (schema: Buffer): Buffer | undefined => {
  if (formOf(schema) !== 'wrapped') return undefined
  const edits: Edit[] = []
  rebase(schema, 0, edits)
  const dialect = lastMember(membersAt(schema, 0), '$schema')
  const head = dialect === undefined ? '' : `"$schema":${schema.toString('utf8', dialect.start, dialect.end)},`
  return Buffer.concat([
    Buffer.from(`{${head}"type":"object","properties":{"result":`),
    edited(schema, edits),
    Buffer.from('},"required":["result"]}'),
  ])
}

/** Collects the edits of every local reference in the schema at `start`. */
const rebase = (bytes: Buffer, start: number, edits: Edit[]): void => {
  for (const element of elementsAt(bytes, start)) rebase(bytes, element.start, edits)
  const members = membersAt(bytes, start)
  // References in a schema with an id of its own are resolved against that id.
  if (members.some((member) => member.key === '$id' && !(stringAt(bytes, member)?.startsWith('#') ?? false))) return
  for (const member of members) {
    if (member.key === '$ref' || member.key === '$dynamicRef') rebaseReference(bytes, member, edits)
    else if (NAME_MAPS.has(member.key)) for (const child of membersAt(bytes, member.start)) rebase(bytes, child.start, edits)
    else if (!DATA_KEYWORDS.has(member.key)) rebase(bytes, member.start, edits)
  }
}

const rebaseReference = (bytes: Buffer, member: Member, edits: Edit[]): void => {
  const reference = stringAt(bytes, member)
  if (reference === '#' || reference?.startsWith('#/'))
    edits.push({ start: member.start, end: member.end, text: JSON.stringify(`${NEW_ROOT}${reference.slice(1)}`) })
}

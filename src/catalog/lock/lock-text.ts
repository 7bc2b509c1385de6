/**
 * Formats a lock for git: JSON in one spelling, keys sorted, one member per line, so that a change is one line. A text of several lines
 * is broken at its line feeds, as YAML allows in double quotes (`\` before the break): the file is YAML and, without comments and
 * these breaks, JSON. Numbers keep their digits; hidden characters are written as escapes.
 */
import { elementsAt, membersAt } from '../../wire/message/members.ts'
import { escapeHidden } from '../../wire/protocol/hidden-characters.ts'
import { stringAt } from '../../wire/message/payload.ts'
import { Scanner } from '../../wire/json/scan.ts'
import type { Span } from '../../wire/json/scan.ts'
import { inLockOrder, LOCK_KINDS } from './lock.ts'
import type { Locked, ServerLock } from './lock.ts'
import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../wire/json/tokens.ts'

export const LOCK_VERSION = 1
const HEADER = [
  '# What each server offers, as it was approved: written by `trunkline lock`, compared by `trunkline check --locked`.',
  '# Review its differences; to take new definitions run `trunkline lock`. What is edited here by hand is refused.',
]

/** The whole file. */
export const printLock = (servers: readonly ServerLock[]): string => {
  const lines = servers
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ key, entries, apps }) => {
      const members = [...kindMembers(entries, '      '), ...(apps.length === 0 ? [] : [appsMember(apps)])]
      return `    ${JSON.stringify(key)}: ${block(members, '    ')}`
    })
  const body = block([`  "version": ${LOCK_VERSION}`, `  "servers": ${block(lines, '  ')}`], '')
  return `${HEADER.join('\n')}\n${body}\n`
}

/** One definition in the form of a lock file; the first line is not indented. `definition`: JSON text. */
export const printDefinition = (definition: string, indent = ''): string => {
  const bytes = Buffer.from(definition)
  return printValue(bytes, new Scanner(bytes).skip(), indent)
}

const appsMember = (apps: readonly Locked[]): string => `      "apps": ${block(kindMembers(apps, '        '), '      ')}`

const kindMembers = (entries: readonly Locked[], indent: string): string[] =>
  LOCK_KINDS.flatMap((kind) => {
    const own = inLockOrder(entries).filter((entry) => entry.kind === kind)
    const [first] = own
    if (first === undefined) return []
    if (kind === 'instructions') return [`${indent}"instructions": ${printEntry(first, indent)}`]
    const inner = own.map((entry) => `${indent}  ${printText(entry.name, '')}: ${printEntry(entry, `${indent}  `)}`)
    return [`${indent}"${kind}": ${block(inner, indent)}`]
  })

const printEntry = ({ digest, definition }: Locked, indent: string): string =>
  block(
    [`${indent}  "digest": "sha256:${digest}"`, `${indent}  "definition": ${printDefinition(definition, `${indent}  `)}`],
    indent,
  )

const block = (lines: readonly string[], indent: string, [open, close] = '{}'): string =>
  lines.length === 0 ? `${open}${close}` : `${open}\n${lines.join(',\n')}\n${indent}${close}`

const printValue = (bytes: Buffer, span: Span, indent: string): string => {
  const first = bytes[span.start]
  const inner = `${indent}  `
  if (first === QUOTE) return printText(stringAt(bytes, span) ?? '', inner)
  if (first === OPEN_BRACKET) {
    const elements = elementsAt(bytes, span.start).map((element) => inner + printValue(bytes, element, inner))
    return block(elements, indent, '[]')
  }
  if (first !== OPEN_BRACE) return bytes.toString('latin1', span.start, span.end)
  // The sort is stable: repeated keys keep their order, since the last one counts.
  const members = membersAt(bytes, span.start).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  return block(
    members.map((member) => `${inner}${printText(member.key, '')}: ${printValue(bytes, member, inner)}`),
    indent,
  )
}

/** One JSON string; with an indent, broken after each of its line feeds. A blank at the beginning of a line is escaped. */
const printText = (text: string, indent: string): string => {
  const token = escapeHidden(JSON.stringify(text))
  if (indent === '') return token
  return token.replaceAll(/\\(.)( ?)(?!"$)/gs, (escape, letter: string, blank: string) =>
    letter === 'n' ? `\\n\\\n${indent}${blank && '\\u0020'}` : escape,
  )
}

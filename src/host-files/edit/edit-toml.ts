/**
 * Edits TOML, the format of Codex. A table is added after the last line, and removed from its header to the next header. The parser does not
 * keep comments, so the text is changed by lines. Forms that this cannot change (a server in an inline table) are refused by the comparison in
 * `editor`.
 */
import { parse, stringify, TomlError } from 'smol-toml'
import { EditError, nested } from './text-format.ts'
import type { TextFormat } from './text-format.ts'

const parseToml = (text: string): unknown => {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    throw new EditError(`does not parse as TOML (line ${error.line}, column ${error.column})`, { cause: error })
  }
}

const HEADER = /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/
const ANY_HEADER = /^\s*\[/
const STEP = /"((?:[^"\\]|\\.)*)"|'([^']*)'|([\w-]+)/g

const stepsOf = (header: string): readonly string[] =>
  [...header.matchAll(STEP)].map(([, double, single, bare]) => double ?? single ?? bare ?? '')

export const tomlFormat: TextFormat = {
  parse: parseToml,
  insert: (text, steps, value) => {
    const eol = text.includes('\r\n') ? '\r\n' : '\n'
    const table = stringify(nested(steps, value)).trim().replaceAll('\n', eol)
    if (text.trim() === '') return `${text}${table}${eol}`
    const end = text.endsWith('\n') ? '' : eol
    const isSeparated = text.endsWith('\n\n') || text.endsWith('\n\r\n')
    return `${text}${end}${isSeparated ? '' : eol}${table}${eol}`
  },
  remove: (text, steps) => {
    const lines = text.split(/(?<=\n)/)
    const isWithin = (line: string): boolean => {
      const header = HEADER.exec(line.replace(/\r?\n$/, ''))?.[1]
      return header !== undefined && steps.every((step, at) => stepsOf(header)[at] === step)
    }
    const kept: string[] = []
    let isRemoving = false
    let pending: string[] = []
    for (const line of lines) {
      if (ANY_HEADER.test(line)) {
        // Comments and blank lines before a header belong to the next table.
        if (!isWithin(line)) kept.push(...pending)
        isRemoving = isWithin(line)
        pending = []
      }
      if (!isRemoving) kept.push(line)
      else if (/^\s*(#.*)?\r?\n?$/.test(line)) pending.push(line)
      else pending = []
    }
    return [...kept, ...pending.filter((line) => line.trim() !== '')].join('')
  },
}

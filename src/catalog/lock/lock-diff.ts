/** Compares two definitions by the lines of their lock-file form, for display. */
import { compareLines, foldLines } from '../../values/line-diff.ts'
import { membersAt } from '../../wire/message/members.ts'
import type { Locked } from './lock.ts'
import { printDefinition } from './lock-text.ts'

/** Unchanged lines shown around a change. */
const CONTEXT = 2

/** Lines that begin with `- ` (old), `+ ` (new) or `  ` (unchanged); `  …` stands for omitted lines. */
export const diffDefinitions = (from: Pick<Locked, 'definition'>, to: Pick<Locked, 'definition'>): readonly string[] => {
  const linesOf = ({ definition }: Pick<Locked, 'definition'>): string[] => printDefinition(definition).split('\n')
  return foldLines(compareLines(linesOf(from), linesOf(to)), CONTEXT, '  …')
}

/** Names of the members that differ (`description`, `inputSchema`); `text` for instructions. */
export const changedMembers = (from: Pick<Locked, 'definition'>, to: Pick<Locked, 'definition'>): readonly string[] => {
  const membersOf = ({ definition }: Pick<Locked, 'definition'>): Map<string, string> => {
    const bytes = Buffer.from(definition)
    return new Map(membersAt(bytes, 0).map(({ key, start, end }) => [key, bytes.toString('utf8', start, end)]))
  }
  const [before, after] = [membersOf(from), membersOf(to)]
  if (before.size === 0) return ['text']
  return [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key))
}

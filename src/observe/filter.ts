/**
 * The filter language for calls: `tool:gh__* err >1s since:10m -host:cursor`. Terms are separated by blanks, and all must match. Used by the
 * API, the dashboard and `trunkline tail`; pure, so that it runs in a browser.
 */
import type { CallRow } from './capture/captured.ts'
import { isErrorOutcome } from './outcomes.ts'
import { ownValue } from '../values/own-value.ts'

/** Whether a row matches. `nowMs`: wall clock, for relative times. */
export type Filter = (row: CallRow, nowMs: number) => boolean

/** Why a filter is invalid, and where. */
export interface FilterProblem {
  readonly message: string
  /** Index of the term's first character. */
  readonly at: number
}

export type FilterEnd = { readonly filter: Filter } | { readonly problem: FilterProblem }

/** Values that a pattern is matched against, by the word before the colon. */
const FIELDS: Readonly<Record<string, (row: CallRow) => readonly (string | number | null)[]>> = {
  tool: ({ name, original }) => [name, original],
  name: ({ name, original }) => [name, original],
  server: ({ server, endpoint }) => [server ?? endpoint],
  host: ({ host }) => [host, host === null ? null : (host.split(' ', 1)[0] ?? '')],
  method: ({ method }) => [method],
  toolset: ({ toolset }) => [toolset],
  principal: ({ principal }) => [principal],
  session: ({ session }) => [session],
  outcome: ({ outcome, state }) => [outcome ?? state],
  kind: ({ error }) => [error?.kind ?? null, error?.code ?? null],
  rule: ({ rules }) => rules,
  transport: ({ transport }) => [transport],
  era: ({ era, revision }) => [era, revision],
  id: ({ id }) => [id],
}

const isError = ({ outcome }: CallRow): boolean => outcome !== null && isErrorOutcome(outcome)

const STATES: Readonly<Record<string, (row: CallRow) => boolean>> = {
  err: isError,
  ok: (row) => row.state === 'done' && !isError(row),
  open: ({ state }) => state === 'open',
}

/** Numbers that can be compared, by the word before the sign; empty: the total time. */
const NUMBERS: Readonly<
  Record<string, { readonly of: (row: CallRow) => number; readonly read: (text: string) => number | undefined }>
> = {
  '': { of: ({ ms }) => ms.total, read: (text) => readDuration(text) },
  total: { of: ({ ms }) => ms.total, read: (text) => readDuration(text) },
  downstream: { of: ({ ms }) => ms.downstream, read: (text) => readDuration(text) },
  gateway: { of: ({ ms }) => ms.gateway, read: (text) => readDuration(text) },
  host: { of: ({ ms }) => ms.host, read: (text) => readDuration(text) },
  in: { of: ({ bytesIn }) => bytesIn, read: (text) => readAmount(text) },
  out: { of: ({ bytesOut }) => bytesOut, read: (text) => readAmount(text) },
  tokens: { of: ({ tokensOut }) => tokensOut, read: (text) => readAmount(text) },
  lanes: { of: ({ lanes }) => lanes, read: (text) => readAmount(text) },
}

const COMPARE: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '>': (a, b) => a > b,
  '<': (a, b) => a < b,
  '>=': (a, b) => a >= b,
  '<=': (a, b) => a <= b,
}

/** Longer filters are refused. */
const MAX_LENGTH = 1_000

/** Parses a filter. An empty one matches every call. */
export const parseFilter = (text: string): FilterEnd => {
  if (text.length > MAX_LENGTH) return problem(`a filter has at most ${MAX_LENGTH} characters`, MAX_LENGTH)
  const terms: Filter[] = []
  for (const { word, at } of words(text)) {
    const isNot = word.length > 1 && word.startsWith('-')
    const term = parseTerm(isNot ? word.slice(1) : word)
    if (typeof term === 'string') return problem(term, at)
    terms.push(isNot ? (row, nowMs) => !term(row, nowMs) : term)
  }
  return { filter: (row, nowMs) => terms.every((term) => term(row, nowMs)) }
}

const problem = (message: string, at: number): FilterEnd => ({ problem: { message, at } })

/** Splits at blanks outside of double quotes. A missing closing quote ends at the end of the text. */
const words = (text: string): readonly { readonly word: string; readonly at: number }[] =>
  [...text.matchAll(/(?:[^\s"]|"[^"]*(?:"|$))+/g)].map(({ 0: word, index }) => ({ word, at: index }))

const parseTerm = (word: string): Filter | string => {
  const state = ownValue(STATES, word)
  if (state !== undefined) return state
  const compared = /^([a-z]*)(>=|<=|>|<)(.*)$/.exec(word)
  if (compared !== null) return parseComparison(compared[1] ?? '', compared[2] ?? '', compared[3] ?? '')
  const colon = /^([a-z]+):(.*)$/s.exec(word)
  if (colon !== null && !word.startsWith('"')) return parseField(colon[1] ?? '', unquoted(colon[2] ?? ''))
  // A common mistake, which would be searched as text and match nothing.
  const equals = /^([a-z]+)=/.exec(word)
  if (equals !== null) return `a field is written "${equals[1]}:…"; in quotes, "${word}" is searched as text`
  return contains(unquoted(word))
}

const parseComparison = (name: string, sign: string, value: string): Filter | string => {
  const number = ownValue(NUMBERS, name)
  const compare = COMPARE[sign]
  if (number === undefined || compare === undefined)
    return `nothing is called "${name}"; known: ${Object.keys(NUMBERS).filter(Boolean).join(', ')}`
  const limit = number.read(value)
  if (limit === undefined) return `${name}${sign} needs a value such as 1s, 20ms, 10KiB or 2k, got "${value}"`
  return (row) => compare(number.of(row), limit)
}

const parseField = (name: string, value: string): Filter | string => {
  if (name === 'since' || name === 'until') {
    const moment = readMoment(value)
    if (moment === undefined) return `${name}: needs a time such as 10m or 2026-11-22T20:00Z, got "${value}"`
    return (row, nowMs) => {
      const atMs = Date.parse(row.at)
      return name === 'since' ? atMs >= moment(nowMs) : atMs <= moment(nowMs)
    }
  }
  const field = ownValue(FIELDS, name)
  if (field === undefined) return `nothing is called "${name}:"; known: ${[...Object.keys(FIELDS), 'since', 'until'].join(', ')}`
  const patterns = value
    .split(',')
    .filter((pattern) => pattern !== '')
    .map(patternOf)
  if (patterns.length === 0) return `${name}: needs a value, such as ${name}:gh*`
  return (row) => field(row).some((text) => text !== null && patterns.some((isMatch) => isMatch(String(text))))
}

const contains = (text: string): Filter => {
  const part = text.toLowerCase()
  return ({ name, original, server, method, error }) =>
    [name, original, server, method, error?.message, error?.kind].some((one) => one?.toLowerCase().includes(part) === true)
}

const unquoted = (text: string): string => text.replaceAll('"', '')

/** Returns a matcher for `*` and `?`, ignoring case. Not a regular expression, so no pattern is slow. */
const patternOf = (pattern: string): ((text: string) => boolean) => {
  const pieces = pattern.toLowerCase().split('*')
  const [first = '', ...rest] = pieces
  const last = rest.pop()
  return (text) => {
    const lower = text.toLowerCase()
    if (last === undefined) return lower.length === first.length && isAt(lower, first, 0)
    if (!isAt(lower, first, 0)) return false
    let at = first.length
    for (const piece of rest) {
      at = findPiece(lower, piece, at)
      if (at === -1) return false
      at += piece.length
    }
    return lower.length - last.length >= at && isAt(lower, last, lower.length - last.length)
  }
}

const isAt = (text: string, piece: string, at: number): boolean => {
  for (let index = 0; index < piece.length; index++) {
    const wanted = piece[index]
    const found = text[at + index]
    if (found === undefined || (wanted !== '?' && wanted !== found)) return false
  }
  return true
}

const findPiece = (text: string, piece: string, from: number): number => {
  for (let at = from; at + piece.length <= text.length; at++) if (isAt(text, piece, at)) return at
  return -1
}

const DURATIONS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Reads a duration such as `1.5s` in milliseconds; a number without a unit is milliseconds. */
const readDuration = (text: string): number | undefined => {
  const [, digits, unit = 'ms'] = /^(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h|d)?$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * (DURATIONS[unit] ?? 1)
}

const AMOUNTS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['k', 1_000],
  ['kb', 1_000],
  ['kib', 1024],
  ['m', 1_000_000],
  ['mb', 1_000_000],
  ['mib', 1024 * 1024],
  ['gib', 1024 ** 3],
])

const readAmount = (text: string): number | undefined => {
  const [, digits, unit = ''] = /^(\d{1,12}(?:\.\d{1,6})?)([a-z]*)$/i.exec(text) ?? []
  const factor = AMOUNTS.get(unit.toLowerCase())
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor
}

/** Reads `10m` (before now) or a date and time. */
const readMoment = (text: string): ((nowMs: number) => number) | undefined => {
  const ago = /[a-z]$/.test(text) ? readDuration(text) : undefined
  if (ago !== undefined) return (nowMs) => nowMs - ago
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : () => at
}

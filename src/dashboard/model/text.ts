/**
 * Texts of servers and hosts, prepared for display. Invisible characters and those that reverse the text direction are shown as their
 * codes. Long texts are cut, with a mark. Only the shown part is processed, so that ten megabytes cost as much as a page.
 */
import { markHidden } from '../../wire/protocol/hidden-characters.ts'

const MOST_IN_LINE = 400
const MOST_IN_BLOCK = 100_000

/** One line: line feeds are shown as `⏎`. */
export const lineOf = (text: string, most = MOST_IN_LINE): string => {
  const shown = markHidden(headOf(text, most)).replaceAll(/\r\n|[\r\n\u2028\u2029]/g, ' ⏎ ')
  return text.length > most ? `${shown}…` : shown
}

/** Several lines; the last one says how much is not shown. */
export const blockOf = (text: string, most = MOST_IN_BLOCK): string => {
  const shown = markHidden(headOf(text, most))
  return text.length > most ? `${shown}\n\n${leftOutOf(text.length - most)}` : shown
}

/** `… 9,900,000 characters more are not shown`. */
export const leftOutOf = (count: number, what = 'characters'): string =>
  `… ${count.toLocaleString('en')} ${what} more are not shown`

const headOf = (text: string, most: number): string => (text.length > most ? text.slice(0, most).toWellFormed() : text)

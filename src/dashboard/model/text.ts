/** Texts of servers and hosts, made fit to be shown: what a person would not see, or what would turn the text around, is shown as its code. */
import { markHidden } from '../../wire/protocol/hidden-characters.ts'

/** Longer texts are cut in lists; the whole is on the screen of its own. */
const MOST = 200_000

/** One line: line feeds are shown as `⏎`. */
export const lineOf = (text: string, most = 400): string =>
  cut(markHidden(text).replaceAll(/\r\n|[\r\n\u2028\u2029]/g, ' ⏎ '), most)

/** Several lines. */
export const blockOf = (text: string, most = MOST): string => cut(markHidden(text), most)

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text)

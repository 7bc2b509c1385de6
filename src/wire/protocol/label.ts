/** Source labels and headings that a host shows beside a server's text (B261). */

/** Control characters, bidi controls, line and paragraph separators. */
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** One line of text that cannot reorder, overwrite or break the text around it. */
export const cleanLabel = (text: string): string => text.replace(CONTROLS, '')

/** As `cleanLabel`, with line feeds left in place. */
export const cleanMessage = (text: string): string => text.split('\n').map(cleanLabel).join('\n')

/** Cleans texts of servers that are shown in one line or beside other texts (B261). */

/** Control characters, bidi controls, and separators of lines and paragraphs. */
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Returns the text as one line that cannot reorder, overwrite or break the text around it. */
export const cleanLabel = (text: string): string => text.replace(CONTROLS, '')

/** As `cleanLabel`, but keeps line feeds. */
export const cleanMessage = (text: string): string => text.split('\n').map(cleanLabel).join('\n')

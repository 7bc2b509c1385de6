/** The bytes that structure JSON text, as their codes. */
export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
/** The first byte of `null`, and of no other value. */
export const NULL = 0x6e
/** Stands for the byte after the last one. */
export const END = -1

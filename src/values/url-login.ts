/** User names and passwords in URLs. */
import { attempt } from './attempt.ts'

/** A percent sign that begins no escape means itself, as for curl. With it as `%25`, other programs can decode the text. */
export const withEscapes = (text: string): string => text.replace(/%(?![\da-f]{2})/gi, '%25')

/** The user name or password that the text in a URL stands for. Escapes of bytes that are no UTF-8 stay. */
export const decodedLogin = (text: string): string => attempt(() => decodeURIComponent(withEscapes(text))) ?? text

/** Returns a short name for a secret text: the first 22 characters of its SHA-256 in base64url. */
import { createHash } from 'node:crypto'

export const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22)

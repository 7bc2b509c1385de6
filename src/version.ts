/** Our version, from the package of this file; the single executable replaces this file (scripts/executable.ts). */
import { readFileSync } from 'node:fs'
import { parseOwnJson } from './values/own-json.ts'

const manifest = parseOwnJson<{ version: string }>(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

export const VERSION = manifest.version

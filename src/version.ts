/** Our own version, from the package that this file belongs to; the single executable has another file in its place (scripts/executable.ts). */
import { readFileSync } from 'node:fs'
import { parseOwnJson } from './values/own-json.ts'

const manifest = parseOwnJson<{ version: string }>(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

export const VERSION = manifest.version

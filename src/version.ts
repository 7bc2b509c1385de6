/** Our own version, from the package that this file belongs to. */
import { readFileSync } from 'node:fs'
import { parseOwnJson } from './values/own-json.ts'

const manifest = parseOwnJson<{ version: string }>(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

export const VERSION = manifest.version

/** The `User-Agent` of our own requests. */
export const USER_AGENT = `trunkline/${VERSION}`

/** `node scripts/start.ts COMMAND…`: the command line of this checkout, from a cached build if one can be made, else from the sources. */
import { pathToFileURL } from 'node:url'
import { cachedProgram } from './cached-build.ts'

const program = await cachedProgram().catch(() => undefined)
await import(program === undefined ? '../src/main.ts' : pathToFileURL(program).href)

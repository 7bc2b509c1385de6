/** What tests start as a process: the command line, and what a program that embeds us imports. Both from the cached build of this run (test/support/build.ts), else from the sources. */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const BUILT = process.env['TEST_PROGRAM']

export const PROGRAM: string = BUILT ?? fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export const LIBRARY: string =
  BUILT === undefined ? fileURLToPath(new URL('../../src/index.ts', import.meta.url)) : join(dirname(BUILT), 'index.js')

/** The command line that tests start as a process: the cached build of this run (test/support/build.ts), else the sources. */
import { fileURLToPath } from 'node:url'

export const PROGRAM: string = process.env['TEST_PROGRAM'] ?? fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/**
 * The servers that tests start as processes, and the conformance suite, each in one file with its packages: a start from it needs half the
 * CPU of one for which Node takes types out and finds several hundred files. Kept beside the cached program (scripts/cached-build.ts).
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { cachedFolder, filesBelow } from '../../scripts/cached-build.ts'
import { PEERS, REQUIREMENTS } from './peer-program.ts'

const SOURCES = ['package-lock.json', ...filesBelow('test/support'), ...filesBelow('test/peers/typescript')]

/** The folder with `<name>.js` of each, built first where a source has changed (1 s). */
export const cachedPeers = (): Promise<string> =>
  cachedFolder('peers-', SOURCES, async (folder) => {
    // Each for itself: one that needs a chunk of another would open more files.
    for (const [name, input] of Object.entries(PEERS)) {
      await using bundle = await rolldown({
        platform: 'node',
        input,
        resolve: { mainFields: ['module', 'main'] },
        logLevel: 'silent',
      })
      await bundle.write({ file: join(folder, `${name}.js`), format: 'esm', codeSplitting: false })
    }
    cpSync(REQUIREMENTS, join(folder, 'conformance', 'requirements'), { recursive: true })
  })

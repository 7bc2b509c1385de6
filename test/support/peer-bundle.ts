/**
 * The servers that tests start as processes, the conformance suite and the Inspector's command line, each in one file with its packages: a
 * start from it needs half the CPU of one for which Node takes types out and finds several hundred files. Kept beside the cached program
 * (scripts/cached-build.ts).
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { cachedFolder, filesBelow } from '../../scripts/cached-build.ts'
import { BESIDE, PEERS } from './peer-program.ts'

const SOURCES = ['package-lock.json', ...filesBelow('test/support'), ...filesBelow('test/peers/typescript')]

/** The folder with `<name>.js` of each, built first where a source has changed (1 s). */
export const cachedPeers = (): Promise<string> =>
  cachedFolder('peers-', SOURCES, async (folder) => {
    // Each for itself: one that needs a chunk of another would open more files.
    for (const [name, input] of Object.entries(PEERS)) {
      await using bundle = await rolldown({
        platform: 'node',
        input,
        // Of the Inspector, for secrets that it keeps: a library of the system.
        external: ['@napi-rs/keyring'],
        resolve: { mainFields: ['module', 'main'] },
        logLevel: 'silent',
      })
      await bundle.write({ file: join(folder, `${name}.js`), format: 'esm', codeSplitting: false })
    }
    for (const [name, from] of Object.entries(BESIDE)) cpSync(from, join(folder, name), { recursive: true })
  })

/** The gateway as users run it, compiled and bundled into a folder of the run. */
import { execFile } from 'node:child_process'
import { copyFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { bundleProgram } from '../scripts/bundle.ts'
import { ROOT } from './process.ts'

/** Compiles and bundles `src/` below `folder` and returns the path of its `main.js`. */
export const buildGateway = async (folder: string): Promise<string> => {
  const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const dist = join(folder, 'dist')
  // The code of `npm run build`, without its declarations and the check of its types, which take ten times as long.
  const options = ['-p', 'tsconfig.build.json', '--noCheck', '--declaration', 'false', '--outDir', dist]
  await promisify(execFile)(process.execPath, [compiler, ...options], { cwd: ROOT })
  await bundleProgram(dist)
  return join(dist, 'main.js')
}

/**
 * `node scripts/executable.ts [FOLDER]`: the program as one file that needs no Node, for this platform: the Node that runs this script
 * with the complete program in it (single executable application). The files of the dashboard and the licences of what is in it are beside it.
 *
 * Not obvious: Node accepts one CommonJS script, so all chunks are one, and modules that find files by their own URL are replaced.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { rolldown } from 'rolldown'
import { BUNDLING, LICENCES, licencesOf } from './bundle.ts'
import { buildDashboard } from './dashboard.ts'

const ROOT = dirname(import.meta.dirname)
/** Marks the place in Node's binary where the program is found. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/** Modules that have no file beside them in the executable, by the end of their path. */
const REPLACED = (version: string): Readonly<Record<string, string>> => ({
  'src/version.ts': `export const VERSION = ${JSON.stringify(version)}`,
  'src/dashboard-folder.ts': `import { dirname, join } from 'node:path'
    export const DASHBOARD_FOLDER = join(dirname(process.execPath), 'dashboard')`,
})

/** The licence of the Node that runs this script: beside it in an archive of nodejs.org, or in the package that npm installed. */
const licenceOfNode = (): string => {
  const own = join(ROOT, 'node_modules/node/node_modules', `node-${process.platform}-${process.arch}`)
  const folder = [dirname(process.execPath), dirname(dirname(process.execPath)), own].find((one) =>
    existsSync(join(one, 'LICENSE')),
  )
  if (folder === undefined) throw new Error(`there is no LICENSE beside ${process.execPath}: it cannot be passed on`)
  return join(folder, 'LICENSE')
}

/** Builds into `folder` and returns the path of the executable. */
export const buildExecutable = async (folder: string): Promise<string> => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  const replaced = REPLACED(version)
  mkdirSync(folder, { recursive: true })
  const script = join(folder, 'program.cjs')
  const bundle = await rolldown({
    ...BUNDLING,
    input: join(ROOT, 'src/program.ts'),
    external: [],
    plugins: [
      {
        name: 'replaced',
        load: (id: string) => Object.entries(replaced).find(([end]) => id.replaceAll('\\', '/').endsWith(end))?.[1],
      },
    ],
  })
  const { output } = await bundle.write({ file: script, format: 'cjs', codeSplitting: false })
  await bundle.close()
  const [configuration, blob] = [join(folder, 'sea.json'), join(folder, 'program.blob')]
  writeFileSync(
    configuration,
    JSON.stringify({ main: script, output: blob, disableExperimentalSEAWarning: true, useCodeCache: true }),
  )
  execFileSync(process.execPath, ['--experimental-sea-config', configuration], { stdio: 'pipe' })
  const file = join(folder, process.platform === 'win32' ? 'trunkline.exe' : 'trunkline')
  copyFileSync(process.execPath, file)
  chmodSync(file, 0o755)
  // What signed Node's binary does not hold for the changed one.
  if (process.platform === 'darwin') execFileSync('codesign', ['--remove-signature', file])
  const machO = process.platform === 'darwin' ? ['--macho-segment-name', 'NODE_SEA'] : []
  const postject = join(ROOT, 'node_modules/postject/dist/cli.js')
  execFileSync(process.execPath, [postject, file, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', FUSE, ...machO], { stdio: 'pipe' })
  if (process.platform === 'darwin') execFileSync('codesign', ['--sign', '-', file])
  await buildDashboard(join(folder, 'dashboard'))
  writeFileSync(join(folder, LICENCES), licencesOf(output))
  copyFileSync(licenceOfNode(), join(folder, 'NODE-LICENSE.txt'))
  for (const made of [script, configuration, blob]) rmSync(made)
  return file
}

if (import.meta.main)
  process.stdout.write(
    `${await buildExecutable(resolve(process.argv[2] ?? join(ROOT, 'build', `${process.platform}-${process.arch}`)))}\n`,
  )

/**
 * `node scripts/bundle.ts [FOLDER]`: bundles the compiled `FOLDER/main.js` and `FOLDER/index.js` (default `dist`) with their
 * imports, so that a start opens a few files instead of several hundred (bundle-chunks.ts). Other commands are separate chunks, loaded
 * when they run. undici is not bundled, since only some servers need it. Compiled files that are in the bundle are removed, and so are
 * declarations that `index.d.ts` does not reach. The dashboard and the licences of the bundled packages are written to the same folder.
 */
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { rolldown } from 'rolldown'
import type { InputOptions, RolldownOutput } from 'rolldown'
import { builtinsByName, startInFewChunks } from './bundle-chunks.ts'
import { buildDashboard, DASHBOARD_PACKAGES } from './dashboard.ts'

/** The folder of the package that a module belongs to; `undefined`: it is ours. */
const packageOf = (module: string): string | undefined => {
  return /^(.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+)[/\\]/.exec(module)?.[1]
}

/** Which file of a release has the licences of the packages in it. */
export const LICENCES = 'THIRD-PARTY-LICENSES.txt'
const RULE = `\n${'-'.repeat(80)}\n\n`

/** The licences of the packages in a bundle and in the dashboard. Each begins with name and version. Throws if a package has no licence. */
export const licencesOf = (output: RolldownOutput['output']): string => {
  const modules = output.flatMap((chunk) => (chunk.type === 'chunk' ? Object.keys(chunk.modules) : []))
  const folders = new Set([
    ...modules.flatMap((module) => packageOf(module) ?? []),
    ...DASHBOARD_PACKAGES.map((name) => join(ROOT, 'node_modules', name)),
  ])
  return [...folders].sort().map(licenceOf).join(RULE)
}

/** `name@version` of each package in such a text. */
export const packagesIn = (licences: string): readonly string[] =>
  licences.split(RULE).map((one) => one.slice(0, one.indexOf('\n')).replace(' ', '@'))

const licenceOf = (folder: string): string => {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, string>
  const file = readdirSync(folder).find((file) => /^licen[cs]e(\.|$)/i.test(file))
  if (file === undefined) throw new Error(`${name} ${version} (${license}) ships no licence file: it cannot be bundled`)
  return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
}

const removeEmptyFolders = (folder: string): void => {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeEmptyFolders(join(folder, entry.name))
  if (readdirSync(folder).length === 0) rmdirSync(folder)
}

const require = createRequire(import.meta.url)
const GRPC_BASE = '@opentelemetry/otlp-grpc-exporter-base'

/** How the program is bundled, from whatever it was compiled to. */
export const BUNDLING = {
  platform: 'node',
  external: ['undici'],
  // Some packages (jsonc-parser) keep a `main` that only `require` can follow, beside the modules that can be bundled.
  resolve: {
    mainFields: ['module', 'main'],
    alias: {
      // This one, as a module, requires its gRPC library at run time, where a bundle has none.
      [GRPC_BASE]: require.resolve(GRPC_BASE),
      // What it offers to Node are CommonJS files, of which nothing can be left out.
      rxjs: join(dirname(require.resolve('rxjs/package.json')), 'dist', 'esm', 'index.js'),
    },
  },
} satisfies InputOptions

/** Writes the bundle of `input`, by names of chunks, to `folder`. */
export const writeBundle = async (
  input: { readonly main: string; readonly index?: string },
  folder: string,
  logLevel: 'info' | 'silent' = 'info',
): Promise<RolldownOutput['output']> => {
  const chunks = startInFewChunks(dirname(input.main))
  await using bundle = await rolldown({ ...BUNDLING, input: { ...input }, plugins: [chunks.plugin, builtinsByName], logLevel })
  const { codeSplitting } = chunks
  const { output } = await bundle.write({ dir: folder, format: 'esm', chunkFileNames: 'main-[name].js', codeSplitting })
  return output
}

/** The declarations that are reached from one, itself included; absolute paths. */
const declarations = (file: string, reached = new Set<string>()): ReadonlySet<string> => {
  if (reached.has(file)) return reached
  reached.add(file)
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g))
    declarations(resolve(dirname(file), name!.replace(/\.[jt]s$/, '.d.ts')), reached)
  return reached
}

const ROOT = dirname(import.meta.dirname)

/** Bundles `folder/main.js` and `folder/index.js` in place. Throws if a package in the bundle has no licence to pass on. */
export const bundleProgram = async (folder: string): Promise<void> => {
  const output = await writeBundle({ main: join(folder, 'main.js'), index: join(folder, 'index.js') }, folder)
  const index = join(folder, 'index.d.ts')
  // What the benchmark compiles has none.
  const kept = existsSync(index) ? declarations(index) : new Set<string>()
  const written = new Set(output.map(({ fileName }) => join(folder, fileName)))
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (entry.isFile() && !kept.has(file) && !written.has(file)) rmSync(file)
  }
  removeEmptyFolders(folder)
  await buildDashboard(join(folder, 'dashboard'))
  writeFileSync(join(folder, LICENCES), licencesOf(output))
}

if (import.meta.main) await bundleProgram(resolve(process.argv[2] ?? join(ROOT, 'dist')))

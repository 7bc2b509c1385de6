/**
 * `node scripts/sbom.ts [FOLDER]`: prints the SBOM (CycloneDX) of the package: what npm installs with it, and what its bundle in FOLDER
 * (default `dist`) contains. For npm the packages in the bundle are development dependencies like the tools, which are left out.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { LICENCES, packagesIn } from './bundle.ts'

interface Sbom {
  readonly metadata: { readonly component: { readonly 'bom-ref': string } }
  readonly components: readonly {
    readonly name: string
    readonly version: string
    readonly scope: string
    readonly 'bom-ref': string
  }[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

const ROOT = dirname(import.meta.dirname)
const bundled = new Set(packagesIn(readFileSync(join(resolve(process.argv[2] ?? join(ROOT, 'dist')), LICENCES), 'utf8')))
// A tool of the tests accepts fewer versions of its peers than there are, for which npm makes no SBOM.
const words = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--legacy-peer-deps']
const all = JSON.parse(execFileSync('npm', words, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 })) as Sbom
const components = all.components
  .filter(({ name, version, scope }) => scope === 'required' || bundled.has(`${name}@${version}`))
  .map((component) => ({ ...component, scope: 'required', properties: [] }))
const kept = new Set([all.metadata.component['bom-ref'], ...components.map((component) => component['bom-ref'])])
const dependencies = all.dependencies
  .filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) }))
process.stdout.write(`${JSON.stringify({ ...all, components, dependencies }, undefined, 2)}\n`)

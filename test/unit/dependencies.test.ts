/** What a user installs with Trunkline: little of it, and nothing that runs at installation (T-36). */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { BUNDLING } from '../../scripts/bundle.ts'

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8')) as unknown
const manifest = read('package.json') as { dependencies: Record<string, string>; devDependencies: Record<string, string> }
const { packages } = read('package-lock.json') as { packages: Record<string, Locked> }
const locked = Object.entries(packages).filter(([path]) => path !== '')
const runtime = locked.filter(([, { dev }]) => dev !== true)

/** Where Node would find `name` from a package at `from`. */
const resolve = (from: string, name: string): string | undefined => {
  const folders =
    from === '' ? [] : from.split('/node_modules/').map((_, at, all) => all.slice(0, all.length - at).join('/node_modules/'))
  return [...folders.map((folder) => `${folder}/node_modules/${name}`), `node_modules/${name}`].find((path) => path in packages)
}

describe('runtime packages', () => {
  test('T-36 are those that the bundle does not contain', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(BUNDLING.external)
    expect(runtime.map(([path]) => path)).toEqual(BUNDLING.external.map((name) => `node_modules/${name}`))
  })

  test('T-36 none runs a script when it is installed', () => {
    expect(runtime.filter(([, { hasInstallScript }]) => hasInstallScript === true).map(([path]) => path)).toEqual([])
  })
})

describe('the lock file', () => {
  test('every version we name is exact', () => {
    const named = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
    expect(named.filter(([, version]) => !/^(npm:@?[\w./-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([])
  })

  test('T-36 every package is pinned by its digest', () => {
    expect(locked.filter(([, { integrity }]) => integrity === undefined).map(([path]) => path)).toEqual([])
  })

  test('holds every package that some platform needs, so that npm ci takes it everywhere', () => {
    const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
      Object.keys({ ...dependencies, ...optionalDependencies })
        .filter((name) => resolve(path, name) === undefined)
        .map((name) => `${path || 'trunkline'} needs ${name}`),
    )
    expect(missing).toEqual([])
  })
})

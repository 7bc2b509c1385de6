/** A folder of configuration files for one test, gone afterwards, and the ways to load them. */
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { loadConfiguration } from '../../../src/config/load.ts'
import { ConfigError } from '../../../src/config/syntax/problems.ts'
import type { RuntimeEnvironment } from '../../../src/config/runtime-environment.ts'

export interface Workspace extends AsyncDisposable {
  readonly folder: string
  path(name: string): string
  write(name: string, text: string, mode?: number): Promise<string>
  load(names?: string | readonly string[], context?: Partial<RuntimeEnvironment>): ReturnType<typeof loadConfiguration>
  /** The lines of the `ConfigError` that loading ends with. */
  errors(names?: string | readonly string[], context?: Partial<RuntimeEnvironment>): Promise<readonly string[]>
}

/** Files by name; `trunkline.yaml` is what is loaded unless a name is given. The environment holds nothing but what a test gives. */
export const workspace = async (files: Readonly<Record<string, string>>): Promise<Workspace> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'trunkline-config-')))
  const path = (name: string) => join(folder, name)
  const write = async (name: string, text: string, mode = 0o600) => {
    await mkdir(dirname(path(name)), { recursive: true })
    await writeFile(path(name), text)
    await chmod(path(name), mode)
    return path(name)
  }
  for (const [name, text] of Object.entries(files)) await write(name, text)
  const load: Workspace['load'] = (names = 'trunkline.yaml', context = {}) =>
    loadConfiguration({ files: [names].flat() }, { env: {}, cwd: folder, home: path('home'), ...context })
  const errors: Workspace['errors'] = async (names, context) => {
    const error: unknown = await load(names, context).then(
      () => new Error('the configuration was accepted'),
      (error: unknown) => error,
    )
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n')
  }
  return { folder, path, write, load, errors, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

export const yaml = (text: string) => workspace({ 'trunkline.yaml': text })

/** Finds the configuration when the command line names none. */
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { RuntimeEnvironment } from '../runtime-environment.ts'
import { configRoot } from './folders.ts'

export const FILE_NAME = 'trunkline.yaml'

/**
 * For commands that a person types: `trunkline.yaml` in `cwd` or the nearest folder above it, else that of the user; `undefined`: none.
 * With a `uid`, a file of another user (except root) is skipped: a configuration runs commands (T-12).
 */
export const findConfiguration = async (
  cwd: string,
  home: string,
  env: RuntimeEnvironment['env'],
  uid?: number,
): Promise<string | undefined> => {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const file = join(folder, FILE_NAME)
    if (await isUsable(file, uid)) return file
    if (folder === dirname(folder)) return userConfiguration(home, env)
  }
}

/** For `stdio`, which hosts start in any folder: only the file in the user's configuration folder. */
export const userConfiguration = async (home: string, env: RuntimeEnvironment['env']): Promise<string | undefined> => {
  const file = userConfigurationPath(home, env)
  return (await isUsable(file)) ? file : undefined
}

/** Path of the user's configuration, which may not exist. */
export const userConfigurationPath = (home: string, env: RuntimeEnvironment['env']): string =>
  join(configRoot({ env, home }), FILE_NAME)

const isUsable = async (file: string, uid?: number): Promise<boolean> => {
  const found = await stat(file).catch(() => undefined)
  return found !== undefined && found.isFile() && (uid === undefined || uid === 0 || found.uid === uid || found.uid === 0)
}

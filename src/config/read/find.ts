/** Finds the configuration when the command line names none. */
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { RuntimeEnvironment } from '../runtime-environment.ts'
import { configRoot } from './folders.ts'

export const FILE_NAME = 'trunkline.yaml'

/**
 * For commands that a person types: `trunkline.yaml` in `cwd` or the nearest folder above it, else that of the user; `undefined`: none.
 * With a `uid`, a file of another user (except root) is skipped: a configuration runs commands (T-12). `skipped` is called with it.
 */
export const findConfiguration = async (
  cwd: string,
  home: string,
  env: RuntimeEnvironment['env'],
  uid?: number,
  skipped?: (file: string) => void,
): Promise<string | undefined> => {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const file = join(folder, FILE_NAME)
    if (await isOfAnother(file, uid)) skipped?.(file)
    else if (await isFile(file)) return file
    if (folder === dirname(folder)) return userConfiguration(home, env)
  }
}

/** For `stdio`, which hosts start in any folder: only the file in the user's configuration folder. */
export const userConfiguration = async (home: string, env: RuntimeEnvironment['env']): Promise<string | undefined> => {
  const file = userConfigurationPath(home, env)
  return (await isFile(file)) ? file : undefined
}

/** Path of the user's configuration, which may not exist. */
export const userConfigurationPath = (home: string, env: RuntimeEnvironment['env']): string =>
  join(configRoot({ env, home }), FILE_NAME)

/** Whether a file belongs to another user than this one and root. */
export const isOfAnother = async (file: string, uid: number | undefined): Promise<boolean> => {
  const found = await stat(file).catch(() => undefined)
  return found?.isFile() === true && uid !== undefined && uid !== 0 && found.uid !== uid && found.uid !== 0
}

const isFile = async (file: string): Promise<boolean> => (await stat(file).catch(() => undefined))?.isFile() === true

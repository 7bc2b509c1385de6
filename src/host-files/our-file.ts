/**
 * Changes `trunkline.yaml` and its `.env` for commands: adds and removes entries. The rest of the file is kept with its comments. Secrets are
 * written to the `env_file`, which only its owner can read.
 */
import { chmod, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { stateRoot } from '../config/read/folders.ts'
import { recogniseHostFile } from '../config/read/host-file.ts'
import type { RuntimeEnvironment } from '../config/runtime-environment.ts'
import { formatProblem } from '../config/syntax/problems.ts'
import type { Problem } from '../config/syntax/problems.ts'
import { plain, treeOf } from '../config/syntax/tree.ts'
import { absolutePath, expandTree } from '../config/syntax/variables.ts'
import { jsonObject } from '../values/json-object.ts'
import { decodeUtf8 } from '../values/utf8.ts'
import { ChangeError, editing, exclusively, folderFor, readState, replaceFile, textOfState } from './edit/change.ts'
import { lookIn, readText, removeIn, setIn } from './edit/editor.ts'
import type { ServerDraft } from './found.ts'

/** The parts of a configuration file that commands need. */
export interface OurFile {
  readonly file: string
  /** `undefined`: the file does not exist. */
  readonly text: string | undefined
  readonly servers: Readonly<Record<string, ServerDraft>>
  /** The file for values of variables: the first `env_file`, or `.env` in the same folder. */
  readonly envFile: string
  /** Whether the configuration has the key `env_file`. */
  readonly namesEnvFile: boolean
  /** The variables in the `env_file`. */
  readonly values: Readonly<Record<string, string | undefined>>
}

/** The environment of the user: it decides where `~/` and variables in paths lead. */
export type OurEnvironment = Pick<RuntimeEnvironment, 'env' | 'home' | 'uid' | 'platform'>

/** Rejects with `ChangeError` for an unreadable file, and for a file of a host: what is written there for us would not be read. */
export const readOurFile = async (file: string, user: OurEnvironment): Promise<OurFile> => {
  const { bytes } = await readState(file)
  const text = bytes?.toString('utf8')
  const data = text === undefined ? {} : editing(file, () => readText(file, text))
  const tree = treeOf(data, file)
  if (tree.kind === 'map' && recogniseHostFile(tree, file) !== undefined)
    throw new ChangeError(
      `${file} is a file of a host: change its servers there, or name with -c a trunkline.yaml that includes it (include: [{ mcpServers: ${basename(file)} }])`,
    )
  const entries = Object.entries(jsonObject(lookIn(data, ['servers'])) ?? {})
  const servers = Object.fromEntries(entries.map(([key, draft]) => [key, jsonObject(draft) ?? {}]))
  const named = [lookIn(data, ['env_file'])].flat().filter((name) => typeof name === 'string')
  const envFile = await envFileAt(file, named[0] ?? '.env', user)
  const values = await readFile(envFile).then(
    (content) => parseEnv(decodeUtf8(content) ?? ''),
    () => ({}),
  )
  return { file, text, servers, envFile, namesEnvFile: named.length > 0, values }
}

/** The path of an `env_file`, as the configuration is read. */
const envFileAt = async (file: string, path: string, { env, home }: OurEnvironment): Promise<string> => {
  const folder = dirname(file)
  const problems: Problem[] = []
  const scope = {
    env,
    constants: { workspaceFolder: folder },
    inputs: new Map<string, string | undefined>(),
    folder,
    home,
    files: new Set<string>(),
    secrets: () => Promise.resolve({ message: 'a path is not a secret', remedy: 'write the path' }),
  }
  const expanded = await expandTree(treeOf(path, file, 'env_file'), scope, problems)
  const [problem] = problems
  if (problem !== undefined) throw new ChangeError(formatProblem(problem))
  return absolutePath(String(plain(expanded)), folder, home)
}

export interface Addition {
  readonly servers: readonly { readonly key: string; readonly draft: ServerDraft }[]
  /** Values for the `env_file`, by name. */
  readonly values: ReadonlyMap<string, string>
}

/** Returns the text of the configuration with added entries. */
export const withServers = (ours: OurFile, { servers, values }: Addition): string =>
  editing(ours.file, () => {
    let text = ours.text ?? NEW_FILE
    if (values.size > 0 && !ours.namesEnvFile) text = setIn(ours.file, text, ['env_file'], ['.env'])
    for (const { key, draft } of servers) text = setIn(ours.file, text, ['servers', key], draft)
    return text
  })

const NEW_FILE = `# Every key is explained in docs/configuration.md of Trunkline.
version: 1
`

/** Returns the text of the configuration without the entry. */
export const withoutServer = (ours: OurFile, key: string): string =>
  editing(ours.file, () => removeIn(ours.file, ours.text ?? '', ['servers', key]))

/** Returns the text of the `env_file` with added values. Throws `ChangeError` for a value that no form of quotes can contain. */
export const withValues = (text: string, values: ReadonlyMap<string, string>): string => {
  const lines = [...values].map(([name, value]) => `${name}=${quoted(name, value)}\n`)
  return `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${lines.join('')}`
}

const quoted = (name: string, value: string): string => {
  const forms = /^[\w@%+:,./~=-]*$/.test(value) ? [value] : [`'${value}'`, `"${value}"`, `\`${value}\``]
  const fit = forms.find((form) => parseEnv(`${name}=${form}\n`)[name] === value)
  if (fit === undefined) throw new ChangeError(`the value of ${name} contains every kind of quote; set it in the environment`)
  return fit
}

/** The files that `add` and `remove` changed. */
export interface Written {
  readonly file: string
  /** The `env_file`; `undefined`: not changed. */
  readonly envFile: string | undefined
}

/**
 * Changes the configuration under a lock. `change` gets its current content. The `env_file` is written first, so that no entry refers to a
 * missing variable.
 */
export const updateOurFile = async (
  file: string,
  user: OurEnvironment,
  change: (
    ours: OurFile,
  ) =>
    | { readonly text: string; readonly values?: ReadonlyMap<string, string> }
    | Promise<{ readonly text: string; readonly values?: ReadonlyMap<string, string> }>,
): Promise<Written> =>
  exclusively(folderFor(stateRoot(user), file), async () => {
    const state = await readState(file)
    const ours = await readOurFile(file, user)
    const { text, values = new Map<string, string>() } = await change(ours)
    if (values.size > 0) {
      const before = await readState(ours.envFile)
      await replaceFile(before, Buffer.from(withValues(textOfState(before), values)), 0o600)
    } else if (
      text.includes('env_file') &&
      (await stat(ours.envFile).catch(() => undefined)) === undefined &&
      ours.text === undefined
    )
      await replaceFile(await readState(ours.envFile), Buffer.alloc(0), 0o600)
    if (text !== textOfState(state)) await replaceFile(state, Buffer.from(text))
    // Only the owner may write a configuration, because it contains commands that are run. The umask does not matter.
    if (state.bytes === undefined) await chmod(file, 0o600)
    return { file, envFile: values.size > 0 ? ours.envFile : undefined }
  })

/** Whether git would add the file: it is in a repository, and no `.gitignore` in its folder or above contains it. */
export const isSeenByGit = async (file: string): Promise<boolean> => {
  const name = file.slice(dirname(file).length + 1)
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const rules = await readFile(join(folder, '.gitignore'), 'utf8').catch(() => '')
    if (rules.split(/\r?\n/).some((line) => [name, `/${name}`, `${name}*`, `*${name}`].includes(line.trim()))) return false
    if ((await stat(join(folder, '.git')).catch(() => undefined)) !== undefined) return true
    if (folder === dirname(folder)) return false
  }
}

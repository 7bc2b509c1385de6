/**
 * `trunkline.yaml` and its `.env`, changed by commands: entries are added and removed, the rest stays, comments too. Values of secrets
 * go to the `env_file`, which its owner alone may read.
 */
import { chmod, readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { jsonObject } from '../values/json-object.ts'
import { ChangeError, editing, exclusively, folderFor, readState, replaceFile, textOfState } from './edit/change.ts'
import { lookIn, readText, removeIn, setIn } from './edit/editor.ts'
import type { ServerDraft } from './found.ts'

/** What commands need of a configuration as it is written. */
export interface OurFile {
  readonly file: string
  /** `undefined`: there is none yet. */
  readonly text: string | undefined
  readonly servers: Readonly<Record<string, ServerDraft>>
  /** Where values of variables go: the first `env_file`, or `.env` beside the file. */
  readonly envFile: string
  readonly namesEnvFile: boolean
  /** What the `env_file` holds. */
  readonly values: Readonly<Record<string, string | undefined>>
}

/** Rejects with `ChangeError` for a file that cannot be read. */
export const readOurFile = async (file: string): Promise<OurFile> => {
  const { bytes } = await readState(file)
  const text = bytes?.toString('utf8')
  const data = text === undefined ? {} : editing(file, () => readText(file, text))
  const entries = Object.entries(jsonObject(lookIn(data, ['servers'])) ?? {})
  const servers = Object.fromEntries(entries.map(([key, draft]) => [key, jsonObject(draft) ?? {}]))
  const named = [lookIn(data, ['env_file'])].flat().filter((name) => typeof name === 'string')
  const envFile = resolve(dirname(file), named[0] ?? '.env')
  const values = await readFile(envFile, 'utf8').then(parseEnv, () => ({}))
  return { file, text, servers, envFile, namesEnvFile: named.length > 0, values }
}

export interface Addition {
  readonly servers: readonly { readonly key: string; readonly draft: ServerDraft }[]
  /** Values for the `env_file`, by name. */
  readonly values: ReadonlyMap<string, string>
}

/** The text of the configuration with more entries. */
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

export const withoutServer = (ours: OurFile, key: string): string =>
  editing(ours.file, () => removeIn(ours.file, ours.text ?? '', ['servers', key]))

/** The text of the `env_file` with more values; a value that no line can hold is an error. */
export const withValues = (text: string, values: ReadonlyMap<string, string>): string => {
  const lines = [...values].map(([name, value]) => `${name}=${quoted(name, value)}\n`)
  return `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${lines.join('')}`
}

const quoted = (name: string, value: string): string => {
  const forms = /^[\w@%+:,./~=-]*$/.test(value) ? [value] : [`'${value}'`, `"${value}"`, `\`${value}\``]
  const fit = forms.find((form) => parseEnv(`${name}=${form}\n`)[name] === value)
  if (fit === undefined) throw new ChangeError(`the value of ${name} holds every kind of quote; set it in the environment`)
  return fit
}

/** What `add` and `remove` changed. */
export interface Written {
  readonly file: string
  /** The `env_file`, where values were added. */
  readonly envFile: string | undefined
}

/**
 * Changes the configuration while no other process of ours does: `change` gets it as it is then. The `env_file` is written first, so
 * that no entry names a variable that is not there.
 */
export const updateOurFile = async (
  file: string,
  stateRoot: string,
  change: (
    ours: OurFile,
  ) =>
    | { readonly text: string; readonly values?: ReadonlyMap<string, string> }
    | Promise<{ readonly text: string; readonly values?: ReadonlyMap<string, string> }>,
): Promise<Written> =>
  exclusively(folderFor(stateRoot, file), async () => {
    const state = await readState(file)
    const ours = await readOurFile(file)
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
    // A configuration says which commands run: it is writable by its owner alone, whatever the umask.
    if (state.bytes === undefined) await chmod(file, 0o600)
    return { file, envFile: values.size > 0 ? ours.envFile : undefined }
  })

/** Whether a repository would take the file: it lies in one, and no `.gitignore` on the way up names it or all files like it. */
export const isSeenByGit = async (file: string): Promise<boolean> => {
  const name = file.slice(dirname(file).length + 1)
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const rules = await readFile(join(folder, '.gitignore'), 'utf8').catch(() => '')
    if (rules.split(/\r?\n/).some((line) => [name, `/${name}`, `${name}*`, `*${name}`].includes(line.trim()))) return false
    if ((await stat(join(folder, '.git')).catch(() => undefined)) !== undefined) return true
    if (folder === dirname(folder)) return false
  }
}

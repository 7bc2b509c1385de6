/**
 * All files of one configuration, read into one form: sections and servers with their variables replaced, from our files and from
 * those of hosts. A key may be in one file only: a duplicate is an error that names both places.
 */
import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import { keysOf } from '../../values/typed-keys.ts'
import { readEnvFiles, withEnvFile } from './env-files.ts'
import { fileSchema } from '../schema/file-schema.ts'
import type { Settings } from '../schema/file-schema.ts'
import { GIVEN, readGiven } from './given.ts'
import { expandGlob, isGlob } from './glob.ts'
import {
  FORMS,
  hostConstants,
  isOurselves,
  readHostServers,
  readInputs,
  recogniseHostFile,
  splitDuplicates,
  workspaceOf,
} from './host-file.ts'
import type { HostFile } from './host-file.ts'
import { readSwitches } from './host-switches.ts'
import { formatProblem, reporterAt } from '../syntax/problems.ts'
import type { Problem } from '../syntax/problems.ts'
import { normaliseKey, RESERVED_KEYS, SERVER_KEY } from '../schema/server-key.ts'
import { SecretStore } from '../secrets/secret-store.ts'
import { readSource } from './source.ts'
import type { Source } from './source.ts'
import type { Guard } from '../options.ts'
import type { RuntimeEnvironment } from '../runtime-environment.ts'
import { asTyped, changeChild, child, plain } from '../syntax/tree.ts'
import type { MapTree, Tree } from '../syntax/tree.ts'
import { unknownKey, validate } from '../syntax/validate.ts'
import { absolutePath, expandTree, shortPath } from '../syntax/variables.ts'
import type { Scope, Value } from '../syntax/variables.ts'

/** The origin of a configuration: files, read in order (relative to `context.cwd`), or `value`, the content of one. */
export interface Sources {
  readonly files: readonly string[]
  readonly value?: unknown
  /** With `value`: the file whose state folder and socket it uses. A value without it keeps no state. */
  readonly standsFor?: string
}

export interface GatheredServer {
  readonly key: string
  readonly tree: MapTree
  /** Base of its relative paths. */
  readonly folder: string
  /** Tags of the `include` that named its file. */
  readonly tags: readonly string[]
  readonly enabled: boolean
  /** Other users may read the file. */
  readonly readable: boolean
  /** It is from a host's file: a problem leaves out this server and does not refuse the file. */
  readonly isHosts: boolean
  /** It is left out because of a problem, which has been reported. */
  readonly isLeftOut: boolean
}

export interface Gathered {
  readonly files: ReadonlySet<string>
  /** Configuration files without content. */
  readonly emptyFiles: ReadonlySet<string>
  readonly globs: ReadonlySet<string>
  readonly servers: ReadonlyMap<string, GatheredServer>
  readonly settings: Settings
  /** The trees of the settings, by section, for the places of later problems. */
  readonly sections: ReadonlyMap<string, Tree>
  /** Folder of the file that contains a section, by section: the base of its relative paths. */
  readonly folders: ReadonlyMap<string, string>
  readonly guards: readonly Guard[]
  /** Values of the secrets that were read. */
  readonly secrets: readonly string[]
}

interface Include {
  readonly tags: readonly string[]
  readonly env: Scope['env']
  /** It is named as a file of a host. */
  readonly isHosts: boolean
  readonly match: Guard['match']
}

/** A file that is being read. */
interface Opened extends Source {
  readonly file: string
  /** Of its variables. */
  readonly scope: Scope
  readonly include: Include
}

export const gather = async (
  { files, value }: Sources,
  context: RuntimeEnvironment,
  problems: Problem[],
  warnings: string[],
): Promise<Gathered> => {
  const gathering = new Gathering(context, problems, warnings)
  if (value !== undefined) await gathering.read(resolve(context.cwd, GIVEN), { value })
  for (const file of files) await gathering.read(resolve(context.cwd, file))
  return gathering.end()
}

class Gathering {
  readonly #context: RuntimeEnvironment
  readonly #problems: Problem[]
  readonly #warnings: string[]
  readonly #secrets: SecretStore
  readonly #files = new Set<string>()
  readonly #emptyFiles = new Set<string>()
  readonly #globs = new Set<string>()
  readonly #servers = new Map<string, GatheredServer>()
  readonly #sections = new Map<string, Tree>()
  readonly #settings: Record<string, unknown> = {}
  readonly #folders = new Map<string, string>()
  readonly #guards: Guard[] = []

  constructor(context: RuntimeEnvironment, problems: Problem[], warnings: string[]) {
    this.#context = context
    this.#problems = problems
    this.#warnings = warnings
    this.#secrets = new SecretStore(context)
  }

  end(): Gathered {
    this.#warnings.push(...this.#secrets.warnings)
    return {
      files: this.#files,
      emptyFiles: this.#emptyFiles,
      globs: this.#globs,
      servers: this.#servers,
      settings: this.#settings,
      sections: this.#sections,
      folders: this.#folders,
      guards: this.#guards,
      secrets: this.#secrets.values,
    }
  }

  /** `value`: read in place of the file. `from`: the include that names the file. */
  async read(
    file: string,
    { value, include, from }: { readonly value?: unknown; readonly include?: Include; readonly from?: Tree } = {},
  ): Promise<void> {
    const { cwd, edited, env, home, overrides } = this.#context
    const name = shortPath(file, cwd)
    if (this.#files.has(file)) {
      const place = from?.place ?? `${name}:1:1`
      this.#problems.push({ place, path: from?.path ?? '', message: `${name} is read twice`, remedy: 'name it once' })
      return
    }
    this.#files.add(file)
    const found: Problem[] = []
    const text = edited?.find((one) => one.file === file)?.text
    const source = value === undefined ? await readSource(file, name, found, text) : readGiven(value, found)
    const host = source && recogniseHostFile(source.tree, file, include?.isHosts)
    const [duplicates, others] = host ? splitDuplicates(found) : [[], found]
    this.#warnings.push(...duplicates)
    this.#problems.push(...others.map((problem) => (source || !from ? problem : atInclude(problem, from, name))))
    if (source === undefined) return
    if (source.isEmpty) this.#emptyFiles.add(file)
    const { tags = [], env: variables = env, isHosts = false, match } = include ?? {}
    const scope: Scope = {
      env: variables,
      constants: host ? hostConstants(file, home) : { workspaceFolder: dirname(file) },
      inputs: host ? readInputs(source.tree) : new Map(),
      folder: host ? workspaceOf(file) : dirname(file),
      home,
      files: this.#files,
      secrets: overrides?.withoutSecrets === true ? noSecret : this.#secrets.lookUp,
      forms: host && FORMS[host.kind],
      warn: (warning) => this.#warnings.push(warning),
    }
    const opened = { ...source, file, scope, include: { tags, env: variables, isHosts, match } }
    await (host ? this.#readHosts(opened, host) : this.#readOurs(opened))
  }

  async #readHosts(opened: Opened, host: HostFile): Promise<void> {
    const { tree, file, scope, include } = opened
    const switches = await readSwitches(tree, host.kind, file, this.#context.home, this.#warnings)
    for (const path of switches.files) this.#files.add(path)
    const known = new Set(this.#servers.keys())
    const all = readHostServers(host, switches, known, include.env, this.#problems)
    const found = all.filter(({ name, tree }) => !isOurselves(name, tree))
    for (const { name, key, tree, warnings } of found) {
      if (key !== name) this.#warnings.push(`${tree.place}: server ${JSON.stringify(name)} is called "${key}" here`)
      this.#warnings.push(...warnings)
    }
    for (const { key, tree, problems } of found) {
      const own = [...problems]
      await this.#addServer(key, await withEnvFile(tree, scope, own), opened, own)
    }
  }

  async #readOurs(opened: Opened): Promise<void> {
    const { tree, scope: outer, include } = opened
    const keys = keysOf(fileSchema.shape)
    const known: readonly string[] = keys
    for (const [key, node] of tree.entries) if (!known.includes(key)) this.#problems.push(unknownKey(key, node, '', known))
    const envFiles = (await this.#section('env_file', tree, outer)) ?? { tree, value: [] }
    const fromFiles = await readEnvFiles(envFiles.value ?? [], outer, envFiles.tree, this.#problems)
    const scope = { ...outer, env: { ...fromFiles, ...outer.env } }
    const providers = tree.entries.get('secrets')
    if (providers !== undefined && this.#isFirst('secrets', providers))
      await this.#secrets.define(providers, scope, this.#problems)
    for (const key of keys) {
      if (['include', 'env_file', 'secrets', 'servers'].includes(key)) continue
      const found = await this.#section(key, tree, scope)
      if (found === undefined || key === '$schema' || key === 'version' || !this.#isFirst(key, found.tree)) continue
      this.#settings[key] = found.value
      this.#folders.set(key, scope.folder)
      if (key in NOT_EMPTY) this.#guards.push({ section: key, match: include.match })
    }
    await this.#readServers({ ...opened, scope })
    await this.#readIncludes({ ...opened, scope })
  }

  /** A section with its variables replaced; `undefined`: it is absent, or all its lines are commented out. */
  async #section<K extends keyof typeof fileSchema.shape>(key: K, tree: MapTree, scope: Scope) {
    const written = tree.entries.get(key)
    if (written === undefined) return undefined
    if (written.kind === 'scalar' && written.value === null) {
      const remedy = NOT_EMPTY[key]
      if (remedy !== undefined) this.#problems.push({ ...at(written), message: 'is empty', remedy })
      return undefined
    }
    // YAML reads `0o660` as 432, which would be other permissions.
    const typed = key === 'listen' && written.kind === 'map' ? changeChild(written, 'unix_mode', asTyped) : written
    const expanded = await expandTree(typed, scope, this.#problems)
    // Cast: TypeScript does not relate a schema of the union to the output of its key.
    const schema: z.ZodType<z.output<(typeof fileSchema.shape)[K]>> = fileSchema.shape[key] as never
    return { tree: expanded, value: validate(schema, expanded, this.#problems) }
  }

  /** Takes note of a section. False, and a problem, if another file has it. */
  #isFirst(key: string, tree: Tree): boolean {
    const first = this.#sections.get(key)
    if (first === undefined) this.#sections.set(key, tree)
    else {
      const message = `"${key}" is already set at ${first.place}`
      this.#problems.push({ place: tree.place, path: key, message, remedy: 'keep one of them' })
    }
    return first === undefined
  }

  async #readServers(opened: Opened): Promise<void> {
    const entries = opened.tree.entries.get('servers')
    if (entries?.kind === 'map') {
      for (const [key, entry] of entries.entries) {
        checkKey(key, entry, this.#problems)
        if (entry.kind === 'map') await this.#addServer(key, entry, opened)
        else reporterAt(entry, this.#problems)([], 'expected a mapping with command or url', '')
      }
    } else if (entries && plain(entries) !== null) {
      reporterAt(entries, this.#problems)([], 'expected a mapping of servers', 'write "key:" and below it command or url')
    }
  }

  async #readIncludes({ tree, scope, include }: Opened): Promise<void> {
    const includes = await this.#section('include', tree, scope)
    for (const [index, item] of (includes?.value ?? []).entries()) {
      // Cast: the tree has a node for each include.
      const from = child(includes!.tree, index)!
      const pattern = absolutePath(item.path, scope.folder, scope.home)
      const inner = { ...include, tags: [...include.tags, ...item.tags], env: scope.env, isHosts: item.isHosts }
      if (!isGlob(item.path)) {
        await this.read(pattern, { include: inner, from })
        continue
      }
      this.#globs.add(pattern)
      const matches = (await expandGlob(pattern)).filter((file) => !this.#files.has(file))
      if (matches.length === 0) this.#warnings.push(`${from.place}: no file matches ${item.path}`)
      for (const file of matches) await this.read(file, { include: { ...inner, match: { glob: pattern, file } }, from })
    }
  }

  /** `own`: it is from a host's file, and has these problems so far. */
  async #addServer(key: string, written: MapTree, { scope, include, readable }: Opened, own?: readonly Problem[]): Promise<void> {
    const isHosts = own !== undefined
    const first = this.#servers.get(key)
    if (first) {
      const message = `server "${key}" is already defined at ${first.tree.place}`
      const problem = { ...at(written), message, remedy: 'give one of them another key' }
      if (isHosts) this.#warnings.push(leftOut(key, problem))
      else this.#problems.push(problem)
      return
    }
    const found: Problem[] = [...(own ?? [])]
    const flag = child(written, 'enabled')
    const enabled = !isOff(flag && (await expandTree(flag, scope, [])))
    const used = enabled ? scope : { ...scope, secrets: noSecret, warn: () => undefined }
    // Cast: variables replace scalars only.
    const tree = (await expandTree(written, used, found)) as MapTree
    const isLeftOut = isHosts && enabled && found.length > 0
    // A disabled server may name variables that are not set here.
    if (isLeftOut) this.#warnings.push(...found.map((problem) => leftOut(key, problem)))
    else if (enabled) this.#problems.push(...found)
    const { folder } = scope
    this.#servers.set(key, { key, tree, folder, tags: include.tags, enabled, readable, isHosts, isLeftOut })
  }
}

/** Sections without which more is allowed, and what to write in place of nothing. */
const NOT_EMPTY: { readonly [K in keyof typeof fileSchema.shape]?: string } = {
  auth: 'name what hosts need, such as tokens, or write mode: none',
  policy: 'remove it to allow all calls, or write {} to deny them',
  strict: 'write true or false',
}

/** The warning for a server of a host's file that cannot be used. */
export const leftOut = (key: string, problem: Problem): string => `${formatProblem(problem)}; server "${key}" is left out`

/** For a disabled server, or for keys alone. */
const noSecret = (): Promise<Value> => Promise.resolve('reported')

const isOff = (tree: Tree | undefined) => tree?.kind === 'scalar' && String(tree.value) === 'false'
const at = ({ place, path }: Tree) => ({ place, path })

/** A problem of a file as a whole, reported at the `include` that names the file. */
const atInclude = (problem: Problem, from: Tree, name: string): Problem =>
  problem.place === `${name}:1:1` ? { ...problem, ...at(from), message: `${name} ${problem.message}` } : problem

/** Reports a key that breaks the rule; its entry is read nevertheless, so that all problems are reported at once. */
const checkKey = (key: string, entry: Tree, problems: Problem[]): void => {
  const report = (message: string) => reporterAt(entry, problems)([], message, `call it "${normaliseKey(key)}"`)
  if (RESERVED_KEYS.includes(key)) report(`server key "${key}" is reserved`)
  else if (!SERVER_KEY.test(key)) {
    const rule = 'a server key is a-z, 0-9 and -, at most 20, beginning with a letter'
    report(`server key ${JSON.stringify(key)} breaks the rule: ${rule}`)
  }
}

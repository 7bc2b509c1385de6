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
import { expandGlob, isGlob } from './glob.ts'
import { FORMS, hostConstants, readHostServers, readInputs, recogniseHostFile, workspaceOf } from './host-file.ts'
import type { HostFile } from './host-file.ts'
import { readSwitches } from './host-switches.ts'
import { formatProblem, reporterAt } from '../syntax/problems.ts'
import type { Problem } from '../syntax/problems.ts'
import { normaliseKey, RESERVED_KEYS, SERVER_KEY } from '../schema/server-key.ts'
import { SecretStore } from '../secrets/secret-store.ts'
import { readSource } from './source.ts'
import type { Source } from './source.ts'
import type { RuntimeEnvironment } from '../runtime-environment.ts'
import { child, plain, treeOf } from '../syntax/tree.ts'
import type { MapTree, Tree } from '../syntax/tree.ts'
import { unknownKey, validate } from '../syntax/validate.ts'
import { absolutePath, expandTree, shortPath } from '../syntax/variables.ts'
import type { Scope, Value } from '../syntax/variables.ts'

/** The origin of a configuration: files, read in order (relative to `context.cwd`), or `value`, the content of one. */
export interface Sources {
  readonly files: readonly string[]
  readonly value?: object
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
  /** Values of the secrets that were read. */
  readonly secrets: readonly string[]
}

interface Include {
  readonly tags: readonly string[]
  readonly env: Scope['env']
}

export const gather = async (
  { files: paths, value }: Sources,
  context: RuntimeEnvironment,
  problems: Problem[],
  warnings: string[],
): Promise<Gathered> => {
  const files = new Set<string>()
  const emptyFiles = new Set<string>()
  const globs = new Set<string>()
  const servers = new Map<string, GatheredServer>()
  const sections = new Map<string, Tree>()
  const settings: Record<string, unknown> = {}
  const folders = new Map<string, string>()
  const secrets = new SecretStore(context)

  const read = async (file: string, include: Include, from?: Tree): Promise<void> => {
    const name = shortPath(file, context.cwd)
    if (files.has(file)) {
      const place = from?.place ?? `${name}:1:1`
      problems.push({ place, path: from?.path ?? '', message: `${name} is read twice`, remedy: 'name it once' })
      return
    }
    files.add(file)
    const found: Problem[] = []
    const edited = context.edited?.find((one) => one.file === file)?.text
    const source = value !== undefined && from === undefined ? given(value, found) : await readSource(file, name, found, edited)
    problems.push(...found.map((problem) => (source || !from ? problem : atInclude(problem, from, name))))
    if (source === undefined) return
    if (source.isEmpty) emptyFiles.add(file)
    const host = recogniseHostFile(source.tree, file)
    const scope: Scope = {
      env: include.env,
      constants: host ? hostConstants(file, context.home) : { workspaceFolder: dirname(file) },
      inputs: host ? readInputs(source.tree) : new Map(),
      folder: host ? workspaceOf(file) : dirname(file),
      home: context.home,
      files,
      secrets: secrets.lookUp,
      forms: host && FORMS[host.kind],
      warn: (text) => warnings.push(text),
    }
    if (host) await readHosts(source, host, file, scope, include)
    else await readOurs(source.tree, scope, include, source.readable)
  }

  const readHosts = async (
    { tree, readable }: Source,
    host: HostFile,
    file: string,
    scope: Scope,
    include: Include,
  ): Promise<void> => {
    const switches = await readSwitches(tree, host.kind, file, context.home, warnings)
    for (const path of switches.files) files.add(path)
    const found = readHostServers(host, switches, new Set(servers.keys()), include.env, problems, warnings)
    for (const { key, tree, problems } of found) {
      const own = [...problems]
      await addServer(key, await withEnvFile(tree, scope, own), scope, include, readable, own)
    }
  }

  const readOurs = async (tree: MapTree, outer: Scope, include: Include, readable: boolean): Promise<void> => {
    const section = async <K extends keyof typeof fileSchema.shape>(key: K, scope: Scope) => {
      const written = tree.entries.get(key)
      // A section whose lines are all commented out counts as absent.
      if (written === undefined || (written.kind === 'scalar' && written.value === null)) return undefined
      const expanded = await expandTree(written, scope, problems)
      // Cast: TypeScript does not relate a schema of the union to the output of its key.
      const schema: z.ZodType<z.output<(typeof fileSchema.shape)[K]>> = fileSchema.shape[key] as never
      return { tree: expanded, value: validate(schema, expanded, problems) }
    }
    const keys = keysOf(fileSchema.shape)
    const known: readonly string[] = keys
    for (const [key, node] of tree.entries) if (!known.includes(key)) problems.push(unknownKey(key, node, '', known))
    const envFiles = (await section('env_file', outer)) ?? { tree, value: [] }
    const scope = {
      ...outer,
      env: { ...(await readEnvFiles(envFiles.value ?? [], outer, envFiles.tree, problems)), ...outer.env },
    }

    const isFirst = (key: string, tree: Tree): boolean => {
      const first = sections.get(key)
      if (first === undefined) sections.set(key, tree)
      else {
        const message = `"${key}" is already set at ${first.place}`
        problems.push({ place: tree.place, path: key, message, remedy: 'keep one of them' })
      }
      return first === undefined
    }
    const providers = tree.entries.get('secrets')
    if (providers !== undefined && isFirst('secrets', providers)) await secrets.define(providers, scope, problems)
    for (const key of keys) {
      if (['include', 'env_file', 'secrets', 'servers'].includes(key)) continue
      const found = await section(key, scope)
      if (found === undefined || key === '$schema' || key === 'version' || !isFirst(key, found.tree)) continue
      settings[key] = found.value
      folders.set(key, scope.folder)
    }
    const entries = tree.entries.get('servers')
    if (entries?.kind === 'map') {
      for (const [key, entry] of entries.entries) {
        checkKey(key, entry, problems)
        if (entry.kind === 'map') await addServer(key, entry, scope, include, readable)
        else reporterAt(entry, problems)([], 'expected a mapping with command or url', '')
      }
    } else if (entries && plain(entries) !== null) {
      reporterAt(entries, problems)([], 'expected a mapping of servers', 'write "key:" and below it command or url')
    }
    const includes = await section('include', scope)
    for (const [index, item] of (includes?.value ?? []).entries()) {
      // Cast: the tree has a node for each include.
      const node = child(includes!.tree, index)!
      const pattern = absolutePath(item.path, scope.folder, scope.home)
      const inner = { tags: [...include.tags, ...item.tags], env: scope.env }
      if (!isGlob(item.path)) {
        await read(pattern, inner, node)
        continue
      }
      globs.add(pattern)
      const matches = (await expandGlob(pattern)).filter((file) => !files.has(file))
      if (matches.length === 0) warnings.push(`${node.place}: no file matches ${item.path}`)
      for (const file of matches) await read(file, inner, node)
    }
  }

  /** `own`: it is from a host's file, and has these problems so far. */
  const addServer = async (
    key: string,
    written: MapTree,
    scope: Scope,
    include: Include,
    readable: boolean,
    own?: readonly Problem[],
  ): Promise<void> => {
    const isHosts = own !== undefined
    const first = servers.get(key)
    if (first) {
      const message = `server "${key}" is already defined at ${first.tree.place}`
      const problem = { ...at(written), message, remedy: 'give one of them another key' }
      if (isHosts) warnings.push(leftOut(key, problem))
      else problems.push(problem)
      return
    }
    const found: Problem[] = [...(own ?? [])]
    const flag = child(written, 'enabled')
    const enabled = !isOff(flag && (await expandTree(flag, scope, [])))
    // Cast: variables replace scalars only.
    const tree = (await expandTree(
      written,
      enabled ? scope : { ...scope, secrets: noSecret, warn: () => undefined },
      found,
    )) as MapTree
    const isLeftOut = isHosts && enabled && found.length > 0
    // A disabled server may name variables that are not set here.
    if (isLeftOut) warnings.push(...found.map((problem) => leftOut(key, problem)))
    else if (enabled) problems.push(...found)
    servers.set(key, { key, tree, folder: scope.folder, tags: include.tags, enabled, readable, isHosts, isLeftOut })
  }

  if (value !== undefined) await read(resolve(context.cwd, GIVEN), { tags: [], env: context.env })
  for (const path of paths) await read(resolve(context.cwd, path), { tags: [], env: context.env })
  warnings.push(...secrets.warnings)
  return { files, emptyFiles, globs, servers, settings, sections, folders, secrets: secrets.values }
}

/** The warning for a server of a host's file that cannot be used. */
export const leftOut = (key: string, problem: Problem): string => `${formatProblem(problem)}; server "${key}" is left out`

/** Name of an object that a program passes, in places. */
const GIVEN = 'configuration'

const given = (value: object, problems: Problem[]): Source | undefined => {
  const tree = treeOf(value, GIVEN)
  if (tree.kind === 'map') return { tree, readable: false, isEmpty: false }
  problems.push({ place: GIVEN, path: '', message: 'expected an object', remedy: 'begin with { servers: … }' })
  return undefined
}

/** Reads no secret for a disabled server. */
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

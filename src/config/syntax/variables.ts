/**
 * Variables in texts: `${VAR}`, `${VAR:-x}`, `${env:VAR}`, `${file:path}`, `${secret:name}`, `${input:id}`, `${workspaceFolder}`.
 * Replaced values are not expanded again, so a value cannot name another variable (T-12). `$${` is a plain `${`. Files of hosts are
 * read with the forms of their host; a variable that is not set is treated there as the host treats it.
 */
import { readFile, stat } from 'node:fs/promises'
import { isAbsolute, relative, resolve } from 'node:path'
import { asError } from '../../values/as-error.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import type { Problem } from './problems.ts'
import type { ScalarTree, Tree } from './tree.ts'
import { ownValue } from '../../values/own-value.ts'

export interface Scope {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Names with a fixed text, such as `workspaceFolder`. */
  readonly constants: Readonly<Record<string, string>>
  /** Defaults of `${input:id}` by id. */
  readonly inputs: ReadonlyMap<string, string | undefined>
  /** The base of relative paths. */
  readonly folder: string
  /** The folder of `~/`. */
  readonly home: string
  /** Files read for `${file:…}` are added: they are watched like the configuration. */
  readonly files: Set<string>
  /** Answers `${secret:…}`. */
  readonly secrets: (path: string) => Promise<Value>
  /** How a host writes variables in its file; `undefined`: the file is ours. */
  readonly forms?: VariableForms | undefined
  /** Receives warnings about variables in a host's file. */
  readonly warn?: (text: string) => void
}

/** How a host writes variables in its files. */
export interface VariableForms {
  /** The matching group is the name, or `form:rest`. */
  readonly pattern: RegExp
  /** A variable that is not set becomes: the text as it was written, or nothing. */
  readonly unset: 'literal' | 'empty'
}

/** The value of a variable, or why there is none; `reported`: that has been reported elsewhere. */
export type Value =
  | { readonly text: string }
  | { readonly message: string; readonly remedy: string; readonly isUnset?: true }
  | 'reported'

const MAX_FILE_BYTES = 1024 * 1024
const VARIABLE = /\$\$\{|\$\{([^{}]*)\}|\$\{/g
const FORMS = 'known forms: ${VAR} ${VAR:-default} ${env:VAR} ${file:path} ${secret:name} ${input:id} ${workspaceFolder}'

/** The same tree with every variable replaced; those without a value are reported, and their texts marked. */
export const expandTree = async (tree: Tree, scope: Scope, problems: Problem[]): Promise<Tree> => {
  if (tree.kind === 'scalar') return expandScalar(tree, scope, problems)
  if (tree.kind === 'list') {
    return { ...tree, items: await Promise.all(tree.items.map((item) => expandTree(item, scope, problems))) }
  }
  const entries = await Promise.all(
    [...tree.entries].map(async ([key, child]) => [key, await expandTree(child, scope, problems)] as const),
  )
  return { ...tree, entries: new Map(entries) }
}

/** An absolute path: `~/` is the home folder, other relative paths start at `folder`. */
export const absolutePath = (path: string, folder: string, home: string): string =>
  /^~(\/|\\|$)/.test(path) ? resolve(home, `.${path.slice(1)}`) : resolve(folder, path)

/** `file` as messages show it: relative to `cwd` where it is inside. */
export const shortPath = (file: string, cwd: string): string => {
  const inside = relative(cwd, file)
  return inside.startsWith('..') || isAbsolute(inside) ? file : inside || '.'
}

const expandScalar = async (scalar: ScalarTree, scope: Scope, problems: Problem[]): Promise<ScalarTree> => {
  if (typeof scalar.value !== 'string' || scalar.variables) return scalar
  const { forms } = scope
  const pattern = forms?.pattern ?? VARIABLE
  const values = await Promise.all(
    [...scalar.value.matchAll(pattern)].map(async ([found, ...groups]): Promise<Value> => {
      const inner = groups.find((group) => group !== undefined)
      if (forms !== undefined) return asHost(found, inner ?? '', scalar, scope, forms)
      if (found === '$${') return { text: '${' }
      return inner === undefined
        ? { message: '"${" without its "}"', remedy: `write $\${ for a plain one; ${FORMS}` }
        : lookUp(inner, scope)
    }),
  )
  if (values.length === 0) return scalar
  const texts: string[] = []
  for (const value of values) {
    if (value === 'reported') continue
    if ('text' in value) texts.push(value.text)
    else problems.push({ place: scalar.place, path: scalar.path, message: value.message, remedy: value.remedy })
  }
  if (texts.length < values.length) return { ...scalar, variables: 'unresolved' }
  // Cast: there is a text for each match.
  return { ...scalar, value: scalar.value.replace(pattern, () => texts.shift()!), variables: true }
}

/** The value as the host has it. A bare `$name` that is not set may be part of any text and needs no warning. */
const asHost = async (
  found: string,
  inner: string,
  { place, path }: ScalarTree,
  scope: Scope,
  forms: VariableForms,
): Promise<Value> => {
  const value = await lookUp(inner, scope)
  if (value === 'reported' || 'text' in value || value.isUnset !== true) return value
  const text = forms.unset === 'empty' && inner.startsWith('env:') ? '' : found
  if (/[{}]/.test(found)) {
    const outcome = text === '' ? 'it is empty' : 'the text stays as it is'
    scope.warn?.(`${place} ${path}: ${value.message}; ${outcome}, as in the host`)
  }
  return { text }
}

const lookUp = async (inner: string, scope: Scope): Promise<Value> => {
  const constant = ownValue(scope.constants, inner)
  if (constant !== undefined) return { text: constant }
  const [, form, rest = ''] = /^(\w+):(?!-)([^]*)$/.exec(inner) ?? []
  if (form === undefined) return environment(inner, scope)
  if (form === 'env') return environment(rest, scope)
  if (form === 'file') return fileContent(rest, scope)
  if (form === 'input') return input(rest, scope)
  if (form === 'secret') return scope.secrets(rest)
  return { message: `unknown variable \${${inner}}`, remedy: FORMS, isUnset: true }
}

const environment = (inner: string, { env, forms }: Scope): Value => {
  const [, name, fallback] = /^([A-Za-z_]\w*)(?::-([^]*))?$/.exec(inner) ?? []
  if (name === undefined) return { message: `unknown variable \${${inner}}`, remedy: FORMS, isUnset: true }
  const value = ownValue(env, name)
  // For hosts an empty variable is set; our files follow the shell, where the default replaces it.
  if (fallback !== undefined) return { text: forms === undefined ? value || fallback : (value ?? fallback) }
  if (value !== undefined) return { text: value }
  return { message: `variable ${name} is not set`, remedy: `set it, or give a default: \${${name}:-…}`, isUnset: true }
}

/** The content of a file without its last line end; for `${file:…}` and for secrets. */
export const fileContent = async (path: string, { folder, home, files }: Scope): Promise<Value> => {
  const file = absolutePath(path, folder, home)
  files.add(file)
  try {
    const { size, isFile } = await stat(file).then((found) => ({ size: found.size, isFile: found.isFile() }))
    if (!isFile) return { message: `\${file:${path}} is not a file`, remedy: 'name a regular file' }
    if (size > MAX_FILE_BYTES)
      return { message: `\${file:${path}} is larger than 1 MiB`, remedy: 'name a file that contains the value only' }
    const text = decodeUtf8(await readFile(file))
    if (text === undefined) return { message: `\${file:${path}} is not UTF-8`, remedy: 'save it as UTF-8' }
    return { text: text.replace(/\r?\n$/, '') }
  } catch (error) {
    const { code } = asError(error)
    return {
      message: `\${file:${path}} cannot be read (${code})`,
      remedy: code === 'ENOENT' ? 'relative paths count from the folder of the configuration file' : 'check its permissions',
    }
  }
}

/** An environment variable, or the input's own default: a gateway may have no terminal to ask at. */
const input = (id: string, { env, inputs }: Scope): Value => {
  const name = `INPUT_${id.toUpperCase().replaceAll(/\W/g, '_')}`
  const value = ownValue(env, name) ?? inputs.get(id)
  return value === undefined
    ? { message: `\${input:${id}} has no value, and Trunkline does not ask`, remedy: `set the environment variable ${name}` }
    : { text: value }
}

/**
 * Translates variables of hosts to our form. Each host has its own form (config/read/host-file). An unset variable is an error in our
 * configuration but not in that of most hosts, so every variable of a draft is reported. Other text that looks like a variable is escaped.
 */
import { isAbsolute, resolve } from 'node:path'
import type { Scope, VariableForms } from '../config/syntax/variables.ts'
import { child, plainMap } from '../config/syntax/tree.ts'
import type { MapTree, ScalarTree, Tree } from '../config/syntax/tree.ts'
import { ownValue } from '../values/own-value.ts'

export interface UsedVariable {
  readonly name: string
  /** The value that the host uses if the variable is not set; `undefined`: none. */
  readonly fallback: string | undefined
}

/** How a file of a host writes variables, and their values. */
export interface HostVariables extends Pick<Scope, 'constants' | 'inputs' | 'env' | 'folder'> {
  readonly form: VariableForms
  /** Whether a reference to an unset variable is ordinary text (`$5`). */
  readonly isOpen: boolean
}

/** Variables of the entry itself. The started program replaces a reference to one in its arguments, as mcp-remote does in headers. */
interface Entry extends HostVariables {
  readonly own: ReadonlySet<string>
}

/** Returns the entry as plain data with our variables, and the variables that it uses. */
export const translate = (
  tree: MapTree,
  host: HostVariables,
): { readonly draft: Readonly<Record<string, unknown>>; readonly variables: readonly UsedVariable[] } => {
  const used = new Map<string, UsedVariable>()
  const note = (name: string, fallback?: string): string => {
    used.set(name, { name, fallback })
    return fallback === undefined ? `\${${name}}` : `\${${name}:-${fallback}}`
  }
  const env = child(tree, 'env')
  const entry = { ...host, own: new Set(env?.kind === 'map' ? env.entries.keys() : []) }
  const members = [...tree.entries].map(
    ([key, member]) => [key, translated(member, key === 'args' ? entry : { ...entry, own: NONE }, note)] as const,
  )
  const draft = plainMap({ ...tree, entries: new Map(members) })
  return { draft: withPaths(draft, host), variables: [...used.values()] }
}

const NONE: ReadonlySet<string> = new Set()

type Note = (name: string, fallback?: string) => string

const translated = (tree: Tree, host: Entry, note: Note): Tree => {
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => translated(item, host, note)) }
  if (tree.kind === 'map')
    return { ...tree, entries: new Map([...tree.entries].map(([key, inner]) => [key, translated(inner, host, note)])) }
  return typeof tree.value === 'string' ? { ...tree, value: textOf(tree, tree.value, host, note) } : tree
}

const REFERENCE = /\$\{(\w+)\}/g
/** Members of Codex that contain names of variables. Their values are references. */
const NAMES_VARIABLES = /\b(env_vars|bearer_token_env_var|env_http_headers)\b/

const textOf = ({ variables, path }: ScalarTree, value: string, host: Entry, note: Note): string => {
  if (variables === true && !NAMES_VARIABLES.test(path)) return escape(value)
  if (variables === true) {
    // Codex leaves out a forwarded variable that is not set.
    const isForwarded = path.includes('env_vars')
    return value.replace(REFERENCE, (_, name: string) =>
      isForwarded && host.env[name] === undefined ? note(name, '') : note(name),
    )
  }
  let text = ''
  let at = 0
  for (const match of value.matchAll(host.form.pattern)) {
    text += escape(value.slice(at, match.index)) + replaced(match, host, note, ALONE.test(value))
    at = match.index + match[0].length
  }
  return text + escape(value.slice(at))
}

const escape = (text: string): string => text.replaceAll('${', () => '$${')

/** `$API_KEY` or `Bearer $API_KEY`: a variable that is set elsewhere, such as in the `.env` of the host, and no ordinary text. */
const ALONE = /^(?:\w+ )?\$[A-Z][A-Z0-9_]*$/

const replaced = ([found, ...groups]: RegExpMatchArray, host: Entry, note: Note, isAlone: boolean): string => {
  const inner = groups.find((group) => group !== undefined) ?? ''
  const constant = ownValue(host.constants, inner)
  if (constant !== undefined) return escape(constant)
  const [, form, rest = ''] = /^(\w+):(?!-)([^]*)$/.exec(inner) ?? []
  if (form === 'input') return note(`INPUT_${rest.toUpperCase().replaceAll(/\W/g, '_')}`, host.inputs.get(rest))
  if (form === 'file') return `\${file:${isAbsolute(rest) || rest.startsWith('~') ? rest : resolve(host.folder, rest)}}`
  const [, name, fallback] = /^([A-Za-z_]\w*)(?::-([^]*))?$/.exec(form === 'env' ? rest : inner) ?? []
  if (name === undefined || (form !== undefined && form !== 'env')) return escape(found)
  const isOwn = form === undefined && fallback === undefined && host.own.has(name) && host.env[name] === undefined
  if (isOwn) return escape(found)
  const isText = host.isOpen && fallback === undefined && host.env[name] === undefined && !found.includes('{') && !isAlone
  if (isText) return escape(found)
  return note(name, fallback)
}

/** Makes paths absolute, because relative paths in our configuration refer to another folder. */
const withPaths = (draft: Readonly<Record<string, unknown>>, { folder }: HostVariables): Readonly<Record<string, unknown>> => {
  const absolute = (path: unknown): unknown => {
    if (typeof path !== 'string' || isAbsolute(path) || /^(\$\{|~)/.test(path)) return path
    return resolve(folder, path)
  }
  const { command, cwd, ...rest } = draft
  const isPath = typeof command === 'string' && /^[^$~]*[/\\]/.test(command)
  return {
    ...(command === undefined ? {} : { command: isPath ? absolute(command) : command }),
    ...rest,
    ...(cwd === undefined ? {} : { cwd: absolute(cwd) }),
  }
}

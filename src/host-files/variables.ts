/**
 * Variables of hosts in the words of ours. Each host writes them its own way (config/read/host-file), and in most an unset one is no error;
 * with us it is, so every variable that a draft names is reported. Text that only looks like a variable to us is escaped.
 */
import { isAbsolute, resolve } from 'node:path'
import type { VariableForms } from '../config/syntax/variables.ts'
import { plainMap } from '../config/syntax/tree.ts'
import type { MapTree, ScalarTree, Tree } from '../config/syntax/tree.ts'

export interface UsedVariable {
  readonly name: string
  /** What the host takes where it is not set; `undefined`: nothing. */
  readonly fallback: string | undefined
}

export interface Wording {
  readonly form: VariableForms
  /** A name that is not set may be ordinary text (`$5`). */
  readonly isOpen: boolean
  readonly constants: Readonly<Record<string, string>>
  /** Defaults of inputs by id. */
  readonly inputs: ReadonlyMap<string, string | undefined>
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where relative paths of the host count from. */
  readonly folder: string
}

/** The entry as plain data, with variables as we write them. */
export const translate = (
  tree: MapTree,
  wording: Wording,
): { readonly draft: Readonly<Record<string, unknown>>; readonly variables: readonly UsedVariable[] } => {
  const used = new Map<string, UsedVariable>()
  const note = (name: string, fallback?: string): string => {
    used.set(name, { name, fallback })
    return fallback === undefined ? `\${${name}}` : `\${${name}:-${fallback}}`
  }
  const draft = plainMap(translatedMap(tree, wording, note))
  return { draft: withPaths(draft, wording), variables: [...used.values()] }
}

type Note = (name: string, fallback?: string) => string

const translatedMap = (tree: MapTree, wording: Wording, note: Note): MapTree => ({
  ...tree,
  entries: new Map([...tree.entries].map(([key, inner]) => [key, translated(inner, wording, note)])),
})

const translated = (tree: Tree, wording: Wording, note: Note): Tree => {
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => translated(item, wording, note)) }
  if (tree.kind === 'map') return translatedMap(tree, wording, note)
  return typeof tree.value === 'string' ? { ...tree, value: textOf(tree, tree.value, wording, note) } : tree
}

const REFERENCE = /\$\{(\w+)\}/g
/** Members of Codex that name variables: what they brought is a reference. */
const NAMES_VARIABLES = /\b(env_vars|bearer_token_env_var|env_http_headers)\b/

const textOf = ({ variables, path }: ScalarTree, value: string, wording: Wording, note: Note): string => {
  if (variables === true && !NAMES_VARIABLES.test(path)) return escape(value)
  if (variables === true) {
    // Codex leaves out a forwarded variable that is not set.
    const isForwarded = path.includes('env_vars')
    return value.replace(REFERENCE, (_, name: string) =>
      isForwarded && wording.env[name] === undefined ? note(name, '') : note(name),
    )
  }
  let text = ''
  let at = 0
  for (const match of value.matchAll(wording.form.pattern)) {
    text += escape(value.slice(at, match.index)) + replaced(match, wording, note)
    at = match.index + match[0].length
  }
  return text + escape(value.slice(at))
}

const escape = (text: string): string => text.replaceAll('${', () => '$${')

const replaced = ([found, ...groups]: RegExpMatchArray, wording: Wording, note: Note): string => {
  const inner = groups.find((group) => group !== undefined) ?? ''
  const constant = Object.hasOwn(wording.constants, inner) ? wording.constants[inner] : undefined
  if (constant !== undefined) return escape(constant)
  const [, form, rest = ''] = /^(\w+):(?!-)([^]*)$/.exec(inner) ?? []
  if (form === 'input') return note(`INPUT_${rest.toUpperCase().replaceAll(/\W/g, '_')}`, wording.inputs.get(rest))
  if (form === 'file') return `\${file:${isAbsolute(rest) || rest.startsWith('~') ? rest : resolve(wording.folder, rest)}}`
  const [, name, fallback] = /^([A-Za-z_]\w*)(?::-([^]*))?$/.exec(form === 'env' ? rest : inner) ?? []
  if (name === undefined || (form !== undefined && form !== 'env')) return escape(found)
  if (wording.isOpen && fallback === undefined && wording.env[name] === undefined && !found.includes('{')) return escape(found)
  return note(name, fallback)
}

/** Relative paths count from the folder of our file then, so they are written in full. */
const withPaths = (draft: Readonly<Record<string, unknown>>, { folder }: Wording): Readonly<Record<string, unknown>> => {
  const whole = (path: unknown): unknown => {
    if (typeof path !== 'string' || isAbsolute(path) || /^(\$\{|~)/.test(path)) return path
    return resolve(folder, path)
  }
  const { command, cwd, ...rest } = draft
  const isPath = typeof command === 'string' && /^[^$~]*[/\\]/.test(command)
  return {
    ...(command === undefined ? {} : { command: isPath ? whole(command) : command }),
    ...rest,
    ...(cwd === undefined ? {} : { cwd: whole(cwd) }),
  }
}

/**
 * The `secrets` section at work: `${secret:name}` and `${secret:provider/name}`. Nothing is asked for that no text of the
 * configuration uses, and nothing twice in one reading.
 */
import PQueue from 'p-queue'
import type { Problem } from '../syntax/problems.ts'
import { SECRET_NAME, secretSchema } from '../schema/secret-schema.ts'
import type { SecretEntry } from '../schema/secret-schema.ts'
import { readSecret } from './secret-sources.ts'
import type { Context } from '../runtime-environment.ts'
import { asTyped, child, plain, scalars } from '../syntax/tree.ts'
import type { Tree } from '../syntax/tree.ts'
import { validate } from '../syntax/validate.ts'
import { expandTree } from '../syntax/variables.ts'
import type { Scope, Value } from '../syntax/variables.ts'

interface Provider {
  /** As written: its variables are replaced for every name. */
  readonly tree: Tree
  readonly scope: Scope
}

const SOURCES = ['file', 'env', 'exec', 'keyring'] as const
/** Password managers ask a person; too many programs at once only stand in each other's way. */
const MAX_PROGRAMS = 4
/** Shorter values are no secrets worth the name, and hiding them would blacken every text. */
const SHORTEST_HIDDEN = 4

export class SecretStore {
  /** What a person should know of the secrets that were read. */
  readonly warnings: string[] = []
  readonly #context: Context
  readonly #providers = new Map<string, Provider>()
  /** Providers whose errors have been reported; uses of them are not reported again. */
  readonly #faulty = new Set<string>()
  readonly #wanted = new Map<string, Promise<Value>>()
  readonly #queue = new PQueue({ concurrency: MAX_PROGRAMS })
  readonly #values = new Set<string>()

  constructor(context: Context) {
    this.#context = context
  }

  /** Every value handed out so far. */
  get values(): readonly string[] {
    return [...this.#values]
  }

  /** Takes a `secrets` section as written; `scope`: of the file it stands in. */
  async define(section: Tree, scope: Scope, problems: Problem[]): Promise<void> {
    if (section.kind !== 'map') {
      const { place, path } = section
      if (plain(section) !== null) problems.push({ place, path, message: 'expected a mapping of secrets by name', remedy: '' })
      return
    }
    for (const [name, written] of section.entries) {
      const tree = asTyped(written)
      const before = problems.length
      const complain = (node: Tree, message: string, remedy: string) =>
        problems.push({ place: node.place, path: node.path, message, remedy })
      if (!SECRET_NAME.test(name))
        complain(tree, `${JSON.stringify(name)} is no name for a secret`, 'use letters, digits, _, - and .')
      const entry = validate(secretSchema, await expandTree(tree, inner(scope, 'NAME'), problems), problems)
      if (entry !== undefined) checkEntry(entry, tree, complain)
      this.#providers.set(name, { tree, scope })
      if (problems.length > before) this.#faulty.add(name)
    }
  }

  /** The value of what stands between `${secret:` and `}`. */
  readonly look = (path: string): Promise<Value> => {
    const slash = path.indexOf('/')
    const provider = slash === -1 ? path : path.slice(0, slash)
    const wanted = this.#wanted.get(path) ?? this.#read(path, provider, slash)
    this.#wanted.set(path, wanted)
    return wanted
  }

  async #read(path: string, provider: string, slash: number): Promise<Value> {
    const { tree, scope } = this.#providers.get(provider) ?? {}
    if (this.#faulty.has(provider)) return 'told'
    if (tree === undefined || scope === undefined) return this.#unknown(provider)
    const takesName = scalars(tree).some(({ source }) => source.includes('${name}'))
    const remedy = `write \${secret:${provider}${takesName ? '/name' : ''}}`
    if (takesName !== (slash !== -1 && slash < path.length - 1))
      return { message: takesName ? `secret "${provider}" holds many` : `secret "${provider}" is one value`, remedy }
    const name = path.slice(slash + 1)
    const expanded = await expandTree(tree, inner(scope, name), [])
    const entry = validate(secretSchema, expanded, [])
    return entry === undefined ? 'told' : this.#value(path, entry, scope)
  }

  async #value(path: string, entry: SecretEntry, scope: Scope): Promise<Value> {
    const { memory } = this.#context
    const key = JSON.stringify([scope.folder, entry])
    const kept = memory?.get(key)
    const isFresh = kept !== undefined && performance.now() - kept.readMs < (entry.cache ?? 0)
    const wanted = { entry, scope, context: this.#context, known: () => this.values }
    const value = isFresh ? kept : await this.#queue.add(() => readSecret(wanted, this.warnings))
    if (value === 'told') return value
    if ('message' in value) return { ...value, message: `\${secret:${path}}: ${value.message}` }
    if (value.text === '') return { message: `\${secret:${path}} is empty`, remedy: 'give it a value' }
    if (entry.cache !== undefined && !isFresh) memory?.set(key, { text: value.text, readMs: performance.now() })
    if (value.text.length >= SHORTEST_HIDDEN) this.#values.add(value.text)
    else this.warnings.push(`\${secret:${path}} is shorter than ${SHORTEST_HIDDEN} characters: it is not hidden in the log`)
    return { text: value.text }
  }

  #unknown(provider: string): Value {
    const known = [...this.#providers.keys()].join(', ')
    const remedy = known === '' ? 'add a section "secrets" above what uses it' : `known: ${known}`
    return { message: `there is no secret "${provider}"`, remedy }
  }
}

/** Within `secrets` there is a name, and there are no secrets. */
const inner = (scope: Scope, name: string): Scope => ({
  ...scope,
  constants: { ...scope.constants, name },
  secrets: () => Promise.resolve({ message: 'a secret is not made of another', remedy: 'use ${VAR} or ${file:path}' }),
})

const checkEntry = (entry: SecretEntry, tree: Tree, complain: (node: Tree, message: string, remedy: string) => void): void => {
  const given = SOURCES.filter((source) => entry[source] !== undefined)
  if (given.length !== 1) {
    const message = given.length === 0 ? 'no source is given' : `${given.join(' and ')} are given`
    complain(tree, message, `give one of ${SOURCES.join(', ')}`)
  }
  const { exec, keyring } = entry
  if (exec?.length === 0) complain(child(tree, 'exec') ?? tree, 'exec names no program', 'write [program, argument, …]')
  if (keyring !== undefined && (keyring.service === undefined || keyring.account === undefined))
    complain(child(tree, 'keyring') ?? tree, 'keyring needs service and account', 'give both')
  for (const key of ['cache', 'timeout'] as const)
    if (entry[key] !== undefined && exec === undefined && keyring === undefined)
      complain(child(tree, key) ?? tree, `"${key}" without exec or keyring has no effect`, 'remove it')
}

/**
 * The values of `${secret:name}` and `${secret:provider/name}`. Reads only secrets that the configuration uses, each once in one reading
 * of the configuration.
 */
import PQueue from 'p-queue'
import { reporterAt } from '../syntax/problems.ts'
import type { Problem, ReportProblem } from '../syntax/problems.ts'
import { SECRET_NAME, secretSchema } from '../schema/secret-schema.ts'
import type { SecretEntry } from '../schema/secret-schema.ts'
import { readSecret } from './secret-sources.ts'
import type { RuntimeEnvironment } from '../runtime-environment.ts'
import { asTyped, plain, scalars } from '../syntax/tree.ts'
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
/** Password managers may prompt for a password, so few programs run at once. */
const MAX_PROGRAMS = 4
/** Shorter values are not hidden: that would hide ordinary words. */
const SHORTEST_HIDDEN = 4

export class SecretStore {
  /** Warnings about the secrets that were read, for the operator. */
  readonly warnings: string[] = []
  readonly #context: RuntimeEnvironment
  readonly #providers = new Map<string, Provider>()
  /** Providers whose errors have been reported; uses of them are not reported again. */
  readonly #faulty = new Set<string>()
  readonly #results = new Map<string, Promise<Value>>()
  readonly #queue = new PQueue({ concurrency: MAX_PROGRAMS })
  readonly #values = new Set<string>()

  constructor(context: RuntimeEnvironment) {
    this.#context = context
  }

  /** All values that were read. */
  get values(): readonly string[] {
    return [...this.#values]
  }

  /** Adds the providers of a `secrets` section; `scope`: of its file. */
  async define(section: Tree, scope: Scope, problems: Problem[]): Promise<void> {
    if (section.kind !== 'map') {
      if (plain(section) !== null) reporterAt(section, problems)([], 'expected a mapping of secrets by name', '')
      return
    }
    for (const [name, written] of section.entries) {
      const tree = asTyped(written)
      const before = problems.length
      const report = reporterAt(tree, problems)
      if (!SECRET_NAME.test(name))
        report([], `${JSON.stringify(name)} is not a name for a secret`, 'use letters, digits, _, - and .')
      const entry = validate(secretSchema, await expandTree(tree, scopeWithin(scope, 'NAME'), problems), problems)
      if (entry !== undefined) checkEntry(entry, report)
      this.#providers.set(name, { tree, scope })
      if (problems.length > before) this.#faulty.add(name)
    }
  }

  /** The value of `${secret:path}`. */
  readonly lookUp = (path: string): Promise<Value> => {
    const slash = path.indexOf('/')
    const provider = slash === -1 ? path : path.slice(0, slash)
    const result = this.#results.get(path) ?? this.#read(path, provider, slash)
    this.#results.set(path, result)
    return result
  }

  async #read(path: string, provider: string, slash: number): Promise<Value> {
    const { tree, scope } = this.#providers.get(provider) ?? {}
    if (this.#faulty.has(provider)) return 'reported'
    if (tree === undefined || scope === undefined) return this.#unknown(provider)
    const takesName = scalars(tree).some(({ source }) => source.includes('${name}'))
    const remedy = `write \${secret:${provider}${takesName ? '/name' : ''}}`
    if (takesName !== (slash !== -1 && slash < path.length - 1))
      return { message: takesName ? `secret "${provider}" has many values` : `secret "${provider}" is one value`, remedy }
    const name = path.slice(slash + 1)
    const expanded = await expandTree(tree, scopeWithin(scope, name), [])
    const entry = validate(secretSchema, expanded, [])
    return entry === undefined ? 'reported' : this.#value(path, entry, scope)
  }

  async #value(path: string, entry: SecretEntry, scope: Scope): Promise<Value> {
    const { memory } = this.#context
    const key = JSON.stringify([scope.folder, entry])
    const kept = memory?.get(key)
    const isFresh = kept !== undefined && performance.now() - kept.readMs < (entry.cache ?? 0)
    const request = { entry, scope, context: this.#context, known: () => this.values }
    const value = isFresh ? kept : await this.#queue.add(() => readSecret(request, this.warnings))
    if (value === 'reported') return value
    if ('message' in value) return { ...value, message: `\${secret:${path}}: ${value.message}` }
    if (value.text === '') return { message: `\${secret:${path}} is empty`, remedy: 'give it a value' }
    if (entry.cache !== undefined && !isFresh) memory?.set(key, { text: value.text, readMs: performance.now() })
    if (value.text.length >= SHORTEST_HIDDEN) this.#values.add(value.text)
    else this.warnings.push(`\${secret:${path}} is shorter than ${SHORTEST_HIDDEN} characters: it is not hidden in the log`)
    return { text: value.text }
  }

  #unknown(provider: string): Value {
    const known = [...this.#providers.keys()].join(', ')
    const remedy = known === '' ? 'add a section "secrets" before its first use' : `known: ${known}`
    return { message: `there is no secret "${provider}"`, remedy }
  }
}

/** The scope within `secrets`: it has `${name}` and no `${secret:…}`. */
const scopeWithin = (scope: Scope, name: string): Scope => ({
  ...scope,
  constants: { ...scope.constants, name },
  secrets: () => Promise.resolve({ message: 'a secret is not made of another', remedy: 'use ${VAR} or ${file:path}' }),
})

const checkEntry = (entry: SecretEntry, report: ReportProblem): void => {
  const given = SOURCES.filter((source) => entry[source] !== undefined)
  if (given.length !== 1) {
    const message = given.length === 0 ? 'no source is given' : `${given.join(' and ')} are given`
    report([], message, `give one of ${SOURCES.join(', ')}`)
  }
  const { exec, keyring } = entry
  if (exec?.length === 0) report(['exec'], 'exec names no program', 'write [program, argument, …]')
  if (keyring !== undefined && (keyring.service === undefined || keyring.account === undefined))
    report(['keyring'], 'keyring needs service and account', 'give both')
  for (const key of ['cache', 'timeout'] as const)
    if (entry[key] !== undefined && exec === undefined && keyring === undefined)
      report([key], `"${key}" without exec or keyring has no effect`, 'remove it')
}

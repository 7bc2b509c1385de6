/**
 * `trunkline add`: writes one server into the configuration, by command, URL, name in the registry, `server.json` or bundle. Secrets go to
 * the `env_file`; an entry from a foreign description is shown before it is written.
 */
import { readFile, stat } from 'node:fs/promises'
import { dirname, extname, resolve } from 'node:path'
import { stateRoot } from '../../config/read/folders.ts'
import { readProxies } from '../../config/build/servers/proxies.ts'
import { forwardedVariables } from '../../config/read/forwarded-variables.ts'
import { registryOptions } from '../../config/schema/registry.ts'
import { normaliseKey, RESERVED_KEYS, SERVER_KEY } from '../../config/schema/server-key.ts'
import { formatProblem } from '../../config/syntax/problems.ts'
import { diffLines } from '../../host-files/edit/diff.ts'
import { lookIn, readText } from '../../host-files/edit/editor.ts'
import { nameOf } from '../../host-files/found.ts'
import type { ServerDraft } from '../../host-files/found.ts'
import { namesIn, planImport, valuesOf } from '../../host-files/import.ts'
import { readIncluded } from '../../host-files/included.ts'
import { isSeenByGit, readOurFile, updateOurFile, withServers } from '../../host-files/our-file.ts'
import type { OurFile } from '../../host-files/our-file.ts'
import { problemsOfDraft } from '../../host-files/usable.ts'
import { bundleDraft, readBundle, unpackBundle } from '../../install/bundle.ts'
import { InstallError } from '../../install/inputs.ts'
import type { Answer } from '../../install/inputs.ts'
import { fetchServer } from '../../install/registry.ts'
import { draftOf, readServerJson } from '../../install/server-json.ts'
import { operatorCommand } from '../../operator-command.ts'
import { variableName } from '../../config/build/written-secrets.ts'
import { asError } from '../../values/as-error.ts'
import { jsonObject } from '../../values/json-object.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import { ask, canAsk, confirm } from '../terminal/ask.ts'
import { refuseChangeErrors, textWith } from './import.ts'
import type { Writing } from './import.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import { printJson, printLines, printResult, remarkLines } from '../terminal/print.ts'

export interface AddOptions {
  readonly env?: readonly string[]
  readonly header?: readonly string[]
  readonly prefix?: string
  readonly transport?: string
  readonly use?: string
  readonly as?: string
  readonly force?: boolean
  readonly yes?: boolean
}

/** A server to add, before it has a key. */
interface Source {
  readonly name: string
  readonly draft: ServerDraft
  /** From a foreign description: it is shown, and needs a confirmation. */
  readonly isForeign: boolean
  /** Variables that are required and have no value yet. */
  readonly open: readonly string[]
}

export const add = async (writing: Writing, words: readonly string[], options: AddOptions): Promise<number> => {
  const { file, named, context, io, json } = writing
  const ours = await refuseChangeErrors(() => readOurFile(file, context))
  const source = await refuseChangeErrors(() =>
    sourceOf(writing, words, options, lookIn(ours.text === undefined ? {} : readText(file, ours.text), ['registry'])),
  )
  const included = await readIncluded(file, named.slice(1), context)
  const isForced = options.force === true
  const taken = namesIn(isForced ? included.servers : { ...included.servers, ...ours.servers })
  const key = keyFor(options.as ?? source.name, options.as !== undefined || words.length > 1, taken)
  const place = included.places.get(key)
  if (place !== undefined)
    throw new CommandError(
      EXIT.config,
      `server "${key}" is defined at ${place}, which belongs to this configuration; choose another name, or change it there`,
    )
  const draft = { ...source.draft, ...(options.prefix === undefined ? {} : { prefix: options.prefix }) }
  refuseUnusable(writing, key, draft, { ...included.servers, ...ours.servers })
  const found = {
    scope: 'user',
    file,
    name: key,
    place: '',
    draft,
    variables: source.open.map((name) => ({ name, fallback: undefined })),
    folder: undefined,
    isOff: false,
  } as const
  const planFor = (now: typeof ours) => {
    const all = Object.entries({ ...included.servers, ...now.servers })
    const others = isForced ? {} : Object.fromEntries(all.filter(([name]) => name !== key))
    return planImport([found], { servers: others, env: context.env, envFile: now.values, folder: '' })
  }
  const planned = planFor(ours)
  io.redactor.learn([...planned.secrets.values()])
  const [existing] = planned.known
  if (existing !== undefined && !isForced)
    throw new CommandError(
      EXIT.config,
      `${included.places.get(existing.key) ?? nameOf(file, context)} already has this server as "${existing.key}"; add it twice with --force`,
    )
  const entries = (plan: typeof planned) => plan.servers.map((server) => ({ ...server, key }))
  if (source.isForeign && options.yes !== true) {
    const text = await textWith(ours, { servers: entries(planned), values: valuesOf(planned) })
    remarkLines(io, diffLines(ours.text ?? '', text))
    if (!canAsk(io)) throw new CommandError(EXIT.usage, `this is what ${JSON.stringify(words[0])} would run; add it with --yes`)
    if (!(await confirm(io, `Add ${key} to ${nameOf(file, context)}?`, false))) {
      await printResult(writing, { file, key, written: false }, () => ['  nothing was added'])
      return EXIT.ok
    }
  }
  const written = await refuseChangeErrors(() =>
    updateOurFile(file, context, (now) => {
      if (Object.hasOwn(now.servers, key) && !isForced)
        throw new CommandError(EXIT.config, `${nameOf(file, context)} has a server "${key}"; choose another name, or --force`)
      const plan = planFor(now)
      const values = valuesOf(plan)
      return { text: withServers(now, { servers: entries(plan), values }), values }
    }),
  )
  const secrets = [...planned.secrets.keys()]
  const unset = [...planned.unset.keys()]
  if (json) {
    await printJson(io, { file, key, entry: planned.servers[0]?.draft, secrets, unset })
    return EXIT.ok
  }
  const envFile = written.envFile === undefined ? undefined : nameOf(written.envFile, context)
  await printLines(io, [
    `  added ${key} to ${nameOf(file, context)}${secrets.length === 0 ? '' : `; ${secrets.join(', ')} in ${envFile} (0600)`}`,
    ...unset.map((name) => `  ▲ ${name} is not set: write it into ${envFile}`),
    ...(written.envFile !== undefined && (await isSeenByGit(written.envFile))
      ? [`  ▲ ${envFile} is not in .gitignore: add it before you commit`]
      : []),
    `  Next: ${operatorCommand(named, 'check', '--live')}`,
  ])
  return EXIT.ok
}

/** Throws for an entry that the configuration would refuse. */
const refuseUnusable = ({ file, context }: Writing, key: string, draft: ServerDraft, others: OurFile['servers']): void => {
  const problems = problemsOfDraft(draft, key, 'nothing was added:', dirname(file), context)
  if (problems.length > 0) throw new CommandError(EXIT.usage, problems.map(formatProblem).join('\n'))
  const prefix = typeof draft['prefix'] === 'string' ? draft['prefix'] : key
  if (RESERVED_KEYS.includes(prefix))
    throw new CommandError(EXIT.usage, `nothing was added: prefix "${prefix}" is reserved; choose another with --prefix`)
  const on = Object.entries(others).filter(([name, { enabled }]) => name !== key && enabled !== false)
  for (const [name, other] of on) {
    const taken = [name, other['prefix']]
    if (taken.includes(prefix))
      throw new CommandError(
        EXIT.usage,
        `nothing was added: "${prefix}" is already the key or prefix of server "${name}"; choose another with --prefix`,
      )
    if (other['prefix'] === key)
      throw new CommandError(EXIT.usage, `nothing was added: "${key}" is the prefix of server "${name}"; choose another name`)
  }
}

const TRANSPORTS = ['stdio', 'http', 'sse']

const sourceOf = async (writing: Writing, words: readonly string[], options: AddOptions, registry: unknown): Promise<Source> => {
  const { context } = writing
  const [first = '', ...rest] = words
  const { env = [], header = [], transport } = options
  if (transport !== undefined && !TRANSPORTS.includes(transport))
    throw new CommandError(EXIT.usage, `--transport is one of ${TRANSPORTS.join(', ')}, got "${transport}"`)
  const own = { ...pairs(env, '=', '-e NAME=VALUE', 'env'), ...pairs(header, ':', '--header "Name: value"', 'headers') }
  const isUrl = (word: string): boolean => /^https?:\/\//i.test(word)
  const [command, ...args] = rest
  const url = command !== undefined && isUrl(command) ? command : isUrl(first) ? first : undefined
  if (url !== undefined && transport !== 'stdio') {
    const parsed = URL.parse(url)
    if (parsed === null) throw new CommandError(EXIT.usage, `${JSON.stringify(url)} is not a URL`)
    const name = url === first ? parsed.hostname.replace(/^(mcp|api|www)\./, '').replace(/\..*/, '') : first
    return { name, draft: { url, ...(transport === undefined ? {} : { transport }), ...own }, isForeign: false, open: [] }
  }
  const scheme = rest.length === 0 ? undefined : /^([a-z][a-z0-9+.-]*):\/\//i.exec(command ?? '')?.[1]
  if (scheme !== undefined && url === undefined)
    throw new CommandError(
      EXIT.usage,
      `${JSON.stringify(command)} is not a URL of a server: expected http:// or https://, got ${scheme}://`,
    )
  if (command !== undefined) {
    if (own.headers !== undefined) throw new CommandError(EXIT.usage, '--header is for URLs; a command takes -e NAME=VALUE')
    const other = transport === undefined || transport === 'stdio' ? {} : { transport }
    const forwarded = forwardedVariables(command, args).filter((name) => own.env?.[name] === undefined)
    const references = forwarded.map((name): [string, string] => [name, `\${${name}}`])
    const all = references.length === 0 ? own : { env: { ...Object.fromEntries(references), ...own.env } }
    return {
      name: first,
      draft: { command, ...(args.length === 0 ? {} : { args }), ...other, ...all },
      isForeign: false,
      open: forwarded,
    }
  }
  const open: string[] = []
  const answer = answerInputs(writing, own.env ?? {}, open)
  const path = resolve(context.cwd, first)
  const isFile = (await stat(path).catch(() => undefined))?.isFile() === true
  if (isFile && extname(path) === '.mcpb') {
    const bundle = await readBundle(path)
    const folder = await unpackBundle(bundle, stateRoot(context))
    const draft = await bundleDraft(bundle, folder, context, answer)
    return { name: bundle.name, draft: merged(draft, own), isForeign: true, open }
  }
  if (isFile) {
    const bytes = await readFile(path).catch((error: unknown) => {
      throw new InstallError(`${first} cannot be read (${asError(error).code}); check its permissions`, { cause: error })
    })
    const server = readServerJson(decodeUtf8(bytes) ?? '', first)
    return { name: server.name, draft: merged(await draftOf(server, answer, options.use), own), isForeign: true, open }
  }
  if (/\.(json|mcpb)$/.test(first) || /^[./~]/.test(first))
    throw new CommandError(EXIT.usage, `there is no file ${first}; name a server.json or a .mcpb bundle`)
  if (!first.includes('/'))
    throw new CommandError(
      EXIT.usage,
      `unclear what "${first}" is: ${operatorCommand([], 'add', first)} URL, or ${operatorCommand([], 'add', first)} -- COMMAND; names in the registry have a "/"`,
    )
  const server = await fetchServer(first, registryOptions(registry), readProxies(context.env).rules)
  return { name: server.name, draft: merged(await draftOf(server, answer, options.use), own), isForeign: true, open }
}

const merged = (draft: ServerDraft, own: { readonly env?: object; readonly headers?: object }): ServerDraft => ({
  ...draft,
  ...(own.env === undefined || draft['command'] === undefined ? {} : { env: { ...jsonObject(draft['env']), ...own.env } }),
  ...(own.headers === undefined || draft['command'] !== undefined
    ? {}
    : { headers: { ...jsonObject(draft['headers']), ...own.headers } }),
})

/** Asks on a terminal. Otherwise the value of `-e`, else the default, else, if it is required, a reference to a variable. */
const answerInputs =
  ({ io }: Writing, given: Readonly<Record<string, string>>, open: string[]): Answer =>
  async ({ name, description, isRequired, isSecret, standard, choices }) => {
    if (given[name] !== undefined) return given[name]
    const hint = [description, choices && `one of ${choices.join(', ')}`, standard && `default ${standard}`].filter(Boolean)
    const question = `${name}${hint.length === 0 ? '' : ` (${hint.join('; ')})`}${isRequired ? '' : ', or nothing'}: `
    for (let attempt = 0; attempt < 3 && canAsk(io); attempt++) {
      const typed = await ask(io, question, isSecret)
      if (typed === undefined) throw new CommandError(EXIT.interrupted, 'nothing was added')
      const isChoice = choices === undefined || choices.includes(typed)
      if (typed !== '' && isChoice) return typed.replaceAll('${', () => '$${')
      if (typed === '' && (standard !== undefined || !isRequired)) return standard
    }
    if (standard !== undefined || !isRequired) return standard
    const variable = variableName(name)
    open.push(variable)
    return `\${${variable}}`
  }

const pairs = <K extends string>(
  texts: readonly string[],
  mark: string,
  form: string,
  member: K,
): { readonly [P in K]?: Readonly<Record<string, string>> } => {
  const entries = texts.map((text) => {
    const at = text.indexOf(mark)
    if (at < 1) throw new CommandError(EXIT.usage, `expected ${form}, got ${JSON.stringify(text)}`)
    return [text.slice(0, at).trim(), text.slice(at + 1).trim()] as const
  })
  // Cast: TypeScript gives a computed key the type `string`.
  return (entries.length === 0 ? {} : { [member]: Object.fromEntries(entries) }) as never
}

/** A typed name must be a valid key; a foreign name is converted to one. */
const keyFor = (name: string, isTyped: boolean, taken: readonly string[]): string => {
  if (!isTyped)
    return SERVER_KEY.test(name) && !RESERVED_KEYS.includes(name) && !taken.includes(name)
      ? name
      : normaliseKey(name, (key) => taken.includes(key))
  if (!SERVER_KEY.test(name) || RESERVED_KEYS.includes(name))
    throw new CommandError(
      EXIT.usage,
      `"${name}" is not a key of a server (a-z, 0-9 and -, at most 20, beginning with a letter); call it "${normaliseKey(name)}"`,
    )
  return name
}

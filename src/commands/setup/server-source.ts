/** What the words of `trunkline add` name: a URL, a command, a bundle, a `server.json`, or a server in the registry. */
import { readFile, stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { readProxies } from '../../config/build/servers/proxies.ts'
import { stateRoot } from '../../config/read/folders.ts'
import { forwardedVariables } from '../../config/read/forwarded-variables.ts'
import { registryOptions } from '../../config/schema/registry.ts'
import type { ServerDraft } from '../../host-files/found.ts'
import { variableName } from '../../config/build/written-secrets.ts'
import { bundleDraft, readBundle, unpackBundle } from '../../install/bundle.ts'
import { InstallError } from '../../install/inputs.ts'
import type { Answer } from '../../install/inputs.ts'
import { fetchServer } from '../../install/registry.ts'
import { draftOf, readServerJson } from '../../install/server-json.ts'
import { operatorCommand } from '../../operator-command.ts'
import { asError } from '../../values/as-error.ts'
import { jsonObject } from '../../values/json-object.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import { ask, canAsk } from '../terminal/ask.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Writing } from './import.ts'

export interface SourceOptions {
  readonly env?: readonly string[]
  readonly header?: readonly string[]
  readonly transport?: string
  readonly use?: string
  /** The arguments of `trunkline add` as typed; absent if one of them was `--`. */
  readonly typed?: readonly string[]
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

const TRANSPORTS = ['stdio', 'http', 'sse']
/** Programs that start servers: as the name of a server they are the beginning of its command. */
const LAUNCHER = /^(?:.*[\\/])?(?:npx|uvx|node|python[\d.]*|docker|podman|bunx|bun|deno|uv|pipx|pnpm)(?:\.(?:exe|cmd))?$/i

/** The variables and headers of the command line. */
interface Own {
  readonly env?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
}

/** `registry`: the section of that name. */
export const sourceOf = async (
  writing: Writing,
  words: readonly string[],
  { env = [], header = [], transport, use, typed }: SourceOptions,
  registry: unknown,
): Promise<Source> => {
  const [first = '', command, ...args] = words
  if (transport !== undefined && !TRANSPORTS.includes(transport))
    throw new CommandError(EXIT.usage, `--transport is one of ${TRANSPORTS.join(', ')}, got "${transport}"`)
  const own: Own = { ...pairs(env, '=', '-e NAME=VALUE', 'env'), ...pairs(header, ':', '--header "Name: value"', 'headers') }
  const url = [command, first].find((word) => word !== undefined && /^https?:\/\//i.test(word))
  if (url !== undefined && transport !== 'stdio') return sourceAt(url, url === first ? undefined : first, transport, own)
  if (command !== undefined) {
    refuseSpelling(words, typed)
    const scheme = url === undefined ? /^([a-z][a-z0-9+.-]*):\/\//i.exec(command)?.[1] : undefined
    if (scheme === undefined) return sourceOfCommand(first, [command, ...args], transport, own)
    const problem = `${JSON.stringify(command)} is not a URL of a server: expected http:// or https://, got ${scheme}://`
    throw new CommandError(EXIT.usage, problem)
  }
  const open: string[] = []
  const answer = answerInputs(writing, own.env ?? {}, open)
  const { name, draft } = await describedBy(first, writing, { answer, use, registry })
  return { name, draft: merged(draft, own), isForeign: true, open }
}

const add = (...words: readonly string[]): string => operatorCommand([], 'add', ...words)

/** Throws for a name and a command that are not meant so. */
const refuseSpelling = ([name = '', command = '']: readonly string[], typed: readonly string[] | undefined): void => {
  refuseText(command)
  if (/^[a-z_]\w*=/i.test(command))
    throw new CommandError(EXIT.usage, `${JSON.stringify(command)} is no command; each variable has its own -e`)
  if (typed === undefined) return
  const at = typed.indexOf(name)
  if (LAUNCHER.test(name)) throw unnamed(typed.slice(at))
  const launch = typed.slice(typed.indexOf(command, at + 1))
  const option = launch.find((word) => word.startsWith('-'))
  if (option !== undefined)
    throw new CommandError(
      EXIT.usage,
      `unclear whether ${JSON.stringify(option)} is an option of the command: ${add(name, '--', ...launch)}`,
    )
}

/** Throws for a word that is neither a name nor a command. */
const refuseText = (word: string): void => {
  if (/^\s*[{[]/.test(word))
    throw new CommandError(
      EXIT.usage,
      `JSON is read from a file: save it, then ${operatorCommand([], 'adapt', 'FILE', '--write')}`,
    )
  if (/^(localhost|[\d.]+|\[[\d:a-f]+\]):\d+(\/|$)/i.test(word))
    throw new CommandError(EXIT.usage, `${JSON.stringify(word)} is not a URL of a server: expected http:// or https://`)
}

/** The refusal of a command without a name. */
export const unnamed = (launch: readonly string[]): CommandError =>
  new CommandError(EXIT.usage, `the name of the server is missing: ${add('NAME', '--', ...launch)}`)

/** `name`: absent: that of its host. */
const sourceAt = (url: string, name: string | undefined, transport: string | undefined, own: Own): Source => {
  const parsed = URL.parse(url)
  if (parsed === null) throw new CommandError(EXIT.usage, `${JSON.stringify(url)} is not a URL`)
  const ofHost = parsed.hostname.replace(/^(mcp|api|www)\./, '').replace(/\..*/, '')
  const draft = { url, ...(transport === undefined ? {} : { transport }), ...own }
  return { name: name ?? ofHost, draft, isForeign: false, open: [] }
}

const sourceOfCommand = (
  name: string,
  [command = '', ...args]: readonly string[],
  transport: string | undefined,
  own: Own,
): Source => {
  if (own.headers !== undefined) throw new CommandError(EXIT.usage, '--header is for URLs; a command takes -e NAME=VALUE')
  const other = transport === undefined || transport === 'stdio' ? {} : { transport }
  const open = forwardedVariables(command, args).filter((variable) => own.env?.[variable] === undefined)
  const references = open.map((variable): [string, string] => [variable, `\${${variable}}`])
  const all = open.length === 0 ? own : { env: { ...Object.fromEntries(references), ...own.env } }
  return { name, draft: { command, ...(args.length === 0 ? {} : { args }), ...other, ...all }, isForeign: false, open }
}

interface Described {
  readonly answer: Answer
  readonly use: string | undefined
  readonly registry: unknown
}

/** The server of a bundle, of a `server.json`, or of a name in the registry. */
const describedBy = async (
  word: string,
  { context }: Writing,
  { answer, use, registry }: Described,
): Promise<Pick<Source, 'name' | 'draft'>> => {
  const path = resolve(context.cwd, word)
  const isFile = (await stat(path).catch(() => undefined))?.isFile() === true
  if (isFile && extname(path) === '.mcpb') {
    const bundle = await readBundle(path)
    const folder = await unpackBundle(bundle, stateRoot(context))
    return { name: bundle.name, draft: await bundleDraft(bundle, folder, context, answer) }
  }
  if (!isFile) refuseName(word)
  const server = isFile
    ? readServerJson(await textOf(path, word), word)
    : await fetchServer(word, registryOptions(registry), readProxies(context.env).rules)
  return { name: server.name, draft: await draftOf(server, answer, use) }
}

const textOf = async (path: string, shown: string): Promise<string> => {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new InstallError(`${shown} cannot be read (${asError(error).code}); check its permissions`, { cause: error })
  })
  return decodeUtf8(bytes) ?? ''
}

/** Throws for a word that is no name in the registry. */
const refuseName = (word: string): void => {
  refuseText(word)
  if (/\.(json|mcpb)$/.test(word) || /^[./~]/.test(word))
    throw new CommandError(EXIT.usage, `there is no file ${word}; name a server.json or a .mcpb bundle`)
  const [launcher = '', ...args] = word.split(/\s+/)
  if (args.length > 0 && LAUNCHER.test(launcher)) throw unnamed([launcher, ...args])
  const pack = /^(?:npm:)?(@[^/]+\/.+)$/.exec(word)?.[1]
  if (pack !== undefined)
    throw new CommandError(EXIT.usage, `${JSON.stringify(word)} is a package of npm: ${add('NAME', '--', 'npx', '-y', pack)}`)
  if (!word.includes('/'))
    throw new CommandError(
      EXIT.usage,
      `unclear what "${word}" is: ${add(word)} URL, or ${add(word)} -- COMMAND; names in the registry have a "/"`,
    )
}

const merged = (draft: ServerDraft, own: Own): ServerDraft => ({
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

/**
 * Converts a `server.json` of the registry (schema 2025-12-11) to an entry of our configuration: one of its remotes, or one of its packages
 * with the program that runs packages of this kind. The content is untrusted, so the command is shown before the entry is written.
 */
import { z } from 'zod'
import type { ServerDraft } from '../host-files/found.ts'
import { InstallError } from './inputs.ts'
import type { Answer } from './inputs.ts'

const line = z.string().max(4096)
const input = {
  description: z.string().max(4096).optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  format: z.string().optional(),
  value: line.optional(),
  default: line.optional(),
  choices: z.array(line).max(256).optional(),
}
const variables = z.record(z.string().max(256), z.object(input)).optional()
const keyValue = z.object({ ...input, name: z.string().min(1).max(256), variables })
const argument = z.object({
  ...input,
  type: z.enum(['positional', 'named']),
  name: z.string().max(256).optional(),
  valueHint: z.string().max(256).optional(),
  variables,
})
const transport = z.object({
  type: z.string().max(64),
  url: line.optional(),
  headers: z.array(keyValue).max(64).optional(),
  variables,
})
const serverPackage = z.object({
  registryType: z.string().max(64),
  identifier: z.string().min(1).max(1024),
  version: z.string().max(256).optional(),
  runtimeHint: z.string().max(64).optional(),
  transport: transport.optional(),
  runtimeArguments: z.array(argument).max(128).optional(),
  packageArguments: z.array(argument).max(128).optional(),
  environmentVariables: z.array(keyValue).max(128).optional(),
})
export const serverJsonSchema = z.object({
  name: z.string().min(3).max(200),
  description: z.string().max(4096).optional(),
  version: z.string().max(256).optional(),
  packages: z.array(serverPackage).max(64).optional(),
  remotes: z.array(transport).max(64).optional(),
})
export type ServerJson = z.output<typeof serverJsonSchema>
type Package = z.output<typeof serverPackage>
type Transport = z.output<typeof transport>
type KeyValue = z.output<typeof keyValue>
type Argument = z.output<typeof argument>

/** Throws `InstallError` for an invalid file. `from`: the source, for messages. */
export const readServerJson = (text: string, from: string): ServerJson => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new InstallError(`${from} is not JSON; name a server.json`, { cause: error })
  }
  const parsed = serverJsonSchema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new InstallError(`${from} is not a valid server.json (${issue?.path.join('.') || 'top level'}: ${issue?.message})`)
}

/** A program that runs packages of one kind. `identifier`: the form of package names; it excludes options. */
interface Runner {
  readonly command: string
  readonly identifier: RegExp
  readonly words: (pack: Package, runtime: readonly string[], env: readonly string[]) => readonly string[]
}

const versioned = ({ identifier, version }: Package): string =>
  version === undefined || version === 'latest' ? identifier : `${identifier}@${version}`

const RUNNERS: Readonly<Record<string, Runner>> = {
  npm: {
    command: 'npx',
    identifier: /^(@[a-z\d~-][\w.~-]*\/)?[a-z\d~][\w.~-]*$/i,
    words: (pack, runtime) => ['-y', ...runtime.filter((word) => word !== '-y' && word !== '--yes'), versioned(pack)],
  },
  pypi: { command: 'uvx', identifier: /^[a-z\d][\w.-]*$/i, words: (pack, runtime) => [...runtime, versioned(pack)] },
  nuget: {
    command: 'dnx',
    identifier: /^[a-z\d_][\w.-]*$/i,
    words: (pack, runtime) => [versioned(pack), ...runtime.filter((word) => word !== '--yes'), '--yes'],
  },
  oci: {
    command: 'docker',
    identifier: /^[a-z\d][\w./:@-]*$/i,
    words: ({ identifier, version }, runtime, env) => [
      'run',
      '-i',
      '--rm',
      ...env.flatMap((name) => ['-e', name]),
      ...runtime.filter((word) => !['run', '-i', '--rm'].includes(word)),
      /[@]|:[^/]+$/.test(identifier) || version === undefined ? identifier : `${identifier}:${version}`,
    ],
  },
}

/** The usable sources in a `server.json`: `remote`, and kinds of packages. */
export const sourcesOf = ({ packages = [], remotes = [] }: ServerJson): readonly string[] => [
  ...new Set([
    ...(remotes.some(({ url }) => url !== undefined) ? ['remote'] : []),
    ...packages.map(({ registryType }) => registryType).filter((type) => Object.hasOwn(RUNNERS, type)),
  ]),
]

/** The configuration entry. `source`: one of `sourcesOf`, by default the first. Rejects with `InstallError`. */
export const draftOf = async (server: ServerJson, answer: Answer, source: string | undefined): Promise<ServerDraft> => {
  const sources = sourcesOf(server)
  const kinds = (server.packages ?? []).map(({ registryType }) => registryType)
  if (sources.length === 0)
    throw new InstallError(
      kinds.includes('mcpb')
        ? `${server.name} is a bundle; download its .mcpb file and add that`
        : `${server.name} names no remote and no package that can be run here${kinds.length === 0 ? '' : ` (${kinds.join(', ')})`}`,
    )
  const chosen = sources.find((one) => source === undefined || one === source)
  if (chosen === undefined) throw new InstallError(`${server.name} has no ${source}; it has ${sources.join(', ')}`)
  if (chosen === 'remote') {
    const remotes = (server.remotes ?? []).filter(({ url }) => url !== undefined)
    // Cast: the source `remote` means that there is one.
    return remoteDraft(remotes.find(({ type }) => type === 'streamable-http') ?? remotes[0]!, answer)
  }
  // Cast: the other sources are kinds of its packages.
  return packageDraft(
    server.packages!.find(({ registryType }) => registryType === chosen)!,
    answer,
  )
}

const remoteDraft = async ({ type, url = '', headers = [], variables = {} }: Transport, answer: Answer): Promise<ServerDraft> => {
  const whole = await filled(url, variables, answer)
  if (URL.parse(whole.replaceAll(/\$\{\w+\}/g, 'x'))?.protocol.startsWith('http') !== true)
    throw new InstallError(`its URL ${JSON.stringify(url)} is not a valid HTTP URL`)
  const members = await keyValues(headers, answer)
  return {
    url: whole,
    ...(type === 'sse' ? { transport: 'sse' } : {}),
    ...(Object.keys(members).length === 0 ? {} : { headers: members }),
  }
}

const packageDraft = async (pack: Package, answer: Answer): Promise<ServerDraft> => {
  // Cast: the sources are kinds that have a runner.
  const runner = RUNNERS[pack.registryType]!
  if (!runner.identifier.test(pack.identifier) || /^-|\s/.test(pack.version ?? ''))
    throw new InstallError(`${JSON.stringify(pack.identifier)} is not a valid name of a package of ${pack.registryType}`)
  if (pack.transport !== undefined && pack.transport.type !== 'stdio' && pack.transport.url === undefined)
    throw new InstallError(`the package ${pack.identifier} has the transport ${pack.transport.type} but no URL`)
  const env = await keyValues(pack.environmentVariables ?? [], answer)
  const runtime = await words(pack.runtimeArguments ?? [], answer)
  const own = await words(pack.packageArguments ?? [], answer)
  return {
    command: runner.command,
    args: [...runner.words(pack, runtime, Object.keys(env)), ...own],
    ...(Object.keys(env).length === 0 ? {} : { env }),
    // A program that serves a URL is started and then connected to at this URL.
    ...(pack.transport?.url !== undefined && pack.transport.type !== 'stdio'
      ? { url: await filled(pack.transport.url, pack.transport.variables ?? {}, answer) }
      : {}),
  }
}

const keyValues = async (inputs: readonly KeyValue[], answer: Answer): Promise<Readonly<Record<string, string>>> => {
  const members: [string, string][] = []
  for (const input of inputs) {
    const value = await valueOf(input.name, input, answer)
    if (value !== undefined) members.push([input.name, value])
  }
  return Object.fromEntries(members)
}

const words = async (args: readonly Argument[], answer: Answer): Promise<readonly string[]> => {
  const all: string[] = []
  for (const argument of args) {
    const { type, name, valueHint } = argument
    const hasValue =
      argument.value !== undefined || argument.default !== undefined || type === 'positional' || valueHint !== undefined
    if (name !== undefined && !hasValue && argument.isRequired === true) {
      all.push(name)
      continue
    }
    const value = await valueOf(name ?? valueHint ?? 'argument', argument, answer)
    if (value === undefined) continue
    if (type === 'named' && name !== undefined) all.push(name)
    all.push(value)
  }
  return all
}

type Input = Omit<KeyValue, 'name'>

/** A fixed value with its variables replaced, else an answer, else the default; `undefined`: the input is left out. */
const valueOf = async (name: string, input: Input, answer: Answer): Promise<string | undefined> =>
  input.value === undefined ? answerTo(name, input, answer) : filled(input.value, input.variables ?? {}, answer)

const answerTo = (name: string, input: Omit<Input, 'variables'>, answer: Answer): Promise<string | undefined> => {
  const { description, isRequired = false, isSecret = false, choices } = input
  return answer({ name, description, isRequired, isSecret, standard: input.default && escaped(input.default), choices })
}

/** Escapes untrusted text, so that it cannot refer to variables. */
const escaped = (text: string): string => text.replaceAll('${', () => '$${')

/** Replaces each `{name}` by the value of its variable. */
const filled = async (
  template: string,
  variables: Readonly<Record<string, Omit<Input, 'variables'>>>,
  answer: Answer,
): Promise<string> => {
  let text = escaped(template)
  for (const [name, input] of Object.entries(variables)) {
    if (!template.includes(`{${name}}`)) continue
    const value = input.value ?? (await answerTo(name, { ...input, isRequired: true }, answer)) ?? ''
    text = text.replaceAll(`{${name}}`, () => value)
  }
  return text
}

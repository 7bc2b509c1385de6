/** Installs `.mcpb` bundles: ZIP archives with a `manifest.json`. They are unpacked into the state folder and started from there. */
import { createHash } from 'node:crypto'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { z } from 'zod'
import { asError } from '../values/as-error.ts'
import { decodeUtf8 } from '../values/utf8.ts'
import { ownValue } from '../values/own-value.ts'
import type { ServerDraft } from '../host-files/found.ts'
import { makeFolder } from '../make-folder.ts'
import { InstallError } from './inputs.ts'
import type { Answer } from './inputs.ts'
import { readZip } from './zip.ts'
import type { ZipMember } from './zip.ts'

const MAX_BUNDLE_BYTES = 512 * 1024 ** 2
const MAX_MANIFEST_BYTES = 1024 ** 2

const text = z.string().max(4096)
const launch = z.object({
  command: text.optional(),
  args: z.array(text).max(256).optional(),
  env: z.record(z.string(), text).optional(),
})
const setting = z.object({
  type: z.string().optional(),
  title: text.optional(),
  description: text.optional(),
  required: z.boolean().optional(),
  sensitive: z.boolean().optional(),
  multiple: z.boolean().optional(),
  default: z.union([text, z.number(), z.boolean(), z.array(text)]).optional(),
})
const manifestSchema = z.object({
  name: z.string().min(1).max(200),
  display_name: text.optional(),
  server: z.object({
    type: z.string(),
    entry_point: text.optional(),
    mcp_config: launch.extend({ platform_overrides: z.record(z.string(), launch).optional() }).optional(),
  }),
  user_config: z.record(z.string(), setting).optional(),
})
type Manifest = z.output<typeof manifestSchema>

export interface Bundle {
  readonly name: string
  readonly manifest: Manifest
  readonly members: readonly ZipMember[]
  /** First 12 hex digits of the SHA-256 of the archive. They are part of the folder name, so each archive has its own folder. */
  readonly digest: string
}

/** `file`: path of the archive. Rejects with `InstallError`. */
export const readBundle = async (file: string): Promise<Bundle> => {
  try {
    if ((await stat(file)).size > MAX_BUNDLE_BYTES) throw new InstallError('it is larger than 512 MiB')
    const bytes = await readFile(file)
    const members = readZip(bytes)
    const found = members.find(({ path }) => path === 'manifest.json')
    if (found === undefined) throw new InstallError('it contains no manifest.json')
    const content = found.read()
    if (content.length > MAX_MANIFEST_BYTES) throw new InstallError('its manifest.json is larger than 1 MiB')
    const parsed = manifestSchema.safeParse(JSON.parse(decodeUtf8(content) ?? ''))
    if (!parsed.success) {
      const [issue] = parsed.error.issues
      throw new InstallError(`its manifest.json is not valid (${issue?.path.join('.')}: ${issue?.message})`)
    }
    const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
    return { name: parsed.data.name, manifest: parsed.data, members, digest }
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'its manifest.json is not JSON' : asError(error).message
    throw new InstallError(`${file} cannot be installed: ${reason}`, { cause: error })
  }
}

/** Unpacks the bundle below `root` and returns its folder. An existing folder is kept. Rejects with `InstallError`. */
export const unpackBundle = async ({ name, members, digest }: Bundle, root: string): Promise<string> => {
  const folder = join(root, 'bundles', `${name.replaceAll(/[^\w.-]+/g, '-').replace(/^\.+/, '')}-${digest}`)
  if ((await stat(folder).catch(() => undefined)) !== undefined) return folder
  const temporary = `${folder}.new`
  try {
    await rm(temporary, { recursive: true, force: true })
    for (const { path, isExecutable, read } of members) {
      const file = join(temporary, ...path.split('/'))
      makeFolder(dirname(file))
      await writeFile(file, read(), { mode: isExecutable ? 0o700 : 0o600 })
    }
    await rename(temporary, folder)
    return folder
  } catch (error) {
    await rm(temporary, { recursive: true, force: true }).catch(() => undefined)
    throw new InstallError(`the bundle ${name} cannot be unpacked to ${folder}: ${asError(error).message}`, { cause: error })
  }
}

/** The configuration entry that starts the unpacked server. `answer`: asks for values. Rejects with `InstallError`. */
export const bundleDraft = async (
  { name, manifest: { server, user_config: settings = {} } }: Bundle,
  folder: string,
  { home, platform = process.platform }: { readonly home: string; readonly platform?: NodeJS.Platform | undefined },
  answer: Answer,
): Promise<ServerDraft> => {
  const { mcp_config: config = {} } = server
  const own = { ...config, ...config.platform_overrides?.[platform] }
  const entry = server.entry_point === undefined ? undefined : `\${__dirname}/${server.entry_point}`
  const interpreter = ownValue(INTERPRETERS, server.type)
  const command = own.command ?? interpreter?.[0] ?? entry
  if (command === undefined) throw new InstallError(`the bundle ${name} names no command and no entry point`)
  const args = own.args ?? (own.command === undefined && entry !== undefined ? (interpreter?.slice(1).concat(entry) ?? []) : [])
  const values = new Map<string, readonly string[]>()
  for (const [key, { title, description, required = false, sensitive = false, default: standard }] of Object.entries(settings)) {
    const all =
      standard === undefined
        ? undefined
        : [standard]
            .flat()
            .map(String)
            .map((one) => withPaths(one, folder, home))
    const given = await answer({
      name: key,
      description: description ?? title,
      isRequired: required,
      isSecret: sensitive,
      standard: all?.join(' '),
      choices: undefined,
    })
    if (given !== undefined) values.set(key, given === all?.join(' ') ? all : [given])
  }
  const fill = (text: string): string[] => {
    // An argument that is only a reference to a list becomes one argument per value.
    const [, whole] = /^\$\{user_config\.([\w.-]+)\}$/.exec(text) ?? []
    if (whole !== undefined) return [...(values.get(whole) ?? [])]
    return [
      withPaths(
        text.replaceAll(/\$\{user_config\.([\w.-]+)\}/g, (_, key: string) => (values.get(key) ?? []).join(' ')),
        folder,
        home,
      ),
    ]
  }
  const env = Object.entries(own.env ?? {}).flatMap(([variable, value]) => {
    const filled = fill(value).join(' ')
    return filled === '' ? [] : [[variable, filled] as const]
  })
  return {
    command: inFolder(fill(command).join(' '), folder),
    args: args.flatMap(fill),
    ...(env.length === 0 ? {} : { env: Object.fromEntries(env) }),
    cwd: folder,
  }
}

/** Programs that start the entry point of a type of server, with their arguments before it. */
const INTERPRETERS: Readonly<Record<string, readonly string[]>> = {
  node: ['node'],
  python: ['python3'],
  uv: ['uv', 'run', '--directory', '${__dirname}'],
}

/** Paths of programs start at the folder of the bundle. */
const inFolder = (command: string, folder: string): string =>
  /[/\\]/.test(command) && !isAbsolute(command) ? join(folder, command) : command

/** Replaces the variables for folders and separators of the manifest. */
const withPaths = (text: string, folder: string, home: string): string =>
  text.replaceAll(/\$\{(__dirname|HOME|DESKTOP|DOCUMENTS|DOWNLOADS|pathSeparator|\/)\}/g, (_, word: string) => {
    if (word === '__dirname') return folder
    if (word === 'pathSeparator' || word === '/') return sep
    return word === 'HOME' ? home : join(home, word.charAt(0) + word.slice(1).toLowerCase())
  })

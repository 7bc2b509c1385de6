/**
 * `trunkline plan -c new.yaml` while a process runs another file: the changes that the new file would make to that process. The process
 * sends a snapshot of itself (`admin/change/basis.ts`); the new file is read here, and nothing of it leaves this command.
 */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { environmentOf } from '../../admin/change/basis.ts'
import type { Basis } from '../../admin/change/basis.ts'
import { connectAdmin, connectAll } from '../../admin/socket/client.ts'
import type { Control } from '../../admin/control.ts'
import { plannedWith } from '../../admin/change/plan.ts'
import type { Plan } from '../../admin/change/plan.ts'
import { locateSocket } from '../../admin/socket/socket-location.ts'
import { differing } from '../../config/change/difference.ts'
import { configurationId, runtimeRoot } from '../../config/read/folders.ts'
import { loadConfiguration } from '../../config/load.ts'
import type { RuntimeEnvironment } from '../../config/runtime-environment.ts'
import { operatorCommand } from '../../operator-command.ts'
import { VERSION } from '../../version.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { remark } from '../terminal/print.ts'

/** The process for which the plan was made. */
export interface Against {
  /** Its main file. */
  readonly file: string
  readonly pid: number
}

/** `file`: the one that the process runs. Without it there must be exactly one process, and a configuration named by `-c`. */
export const planElsewhere = async (
  invocation: Invocation,
  file: string | undefined,
): Promise<{ readonly made: Plan; readonly against: Against }> => {
  const control = await (file === undefined ? soleProcess(invocation) : processOf(invocation, file))
  const basis = await basisFrom(control, invocation)
  const { files, context, io } = invocation
  const target = { ...context, env: environmentAs(basis, context.env), overrides: overridesAs(basis, context.overrides) }
  const after = await loadConfiguration({ files }, target)
  io.redactor.learn(after.secrets)
  const made = plannedWith(basis, after, target.env)
  const differ = await differingVariables(basis, context.env, after.files)
  if (differ.length > 0)
    remark(io, `${differ.join(', ')}: the running process has other values; the plan uses those of this command`)
  return { made, against: { file: basis.files[0] ?? '', pid: basis.pid } }
}

const processOf = async ({ context, io }: Invocation, file: string): Promise<Control> => {
  const id = configurationId(resolve(context.cwd, file))
  const location = locateSocket({ id, runtimeDir: runtimeRoot(context) }, context.uid, context.platform)
  const control = await connectAdmin(location, io.interrupted)
  if (control === undefined)
    throw new CommandError(EXIT.unreachable, `no process runs ${file}; start one: ${operatorCommand([file], 'up')}`)
  return control
}

/** A configuration that was only found in the working folder is not compared with the process of another one. */
const soleProcess = async ({ files, isFound, socket, context, command, io }: Invocation): Promise<Control> => {
  const [file = ''] = files
  const nothing = isFound ? `no process runs ${file}` : 'no process of yours runs here'
  const others = (context.overrides?.named ?? []).length === 0 ? [] : await connectAll(socket, io.interrupted)
  const [sole] = others
  if (sole === undefined)
    throw new CommandError(EXIT.unreachable, `${nothing}; start one: ${operatorCommand(isFound ? files : [], 'up')}`)
  if (others.length === 1) return sole
  const running = await Promise.all(others.map(async (control) => (await control.status()).files[0] ?? ''))
  throw new CommandError(
    EXIT.usage,
    `${nothing}, and several others run: ${running.sort().join(', ')}; name the one to compare with: ${command('plan', '--running', running[0] ?? '')}`,
  )
}

/** Throws for a process of another version, whose digests cannot be compared. */
const basisFrom = async (control: Control, { files: [file = ''] }: Invocation): Promise<Basis> => {
  const basis = await control.basis()
  if (basis !== undefined) return basis
  const { version, files } = await control.status()
  throw new CommandError(
    EXIT.unreachable,
    `the process of ${files[0]} is trunkline ${version}, and this is ${VERSION}: only the same version can plan ${file}; restart the process with this version, or use its own`,
  )
}

/** Options of the running process apply to its next file as well, as do its id and its state. */
const overridesAs = (
  { overrides, files }: Basis,
  own: RuntimeEnvironment['overrides'] = {},
): RuntimeEnvironment['overrides'] => ({
  ...overrides,
  ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)),
  standsFor: files[0],
})

/** The variables of the running process, with the values of this command. Variables that are missing here keep their reference as their value. */
const environmentAs = (basis: Basis, own: RuntimeEnvironment['env']): RuntimeEnvironment['env'] =>
  Object.fromEntries(Object.keys(basis.env).map((name) => [name, own[name] ?? `\${${name}}`]))

/** Variables with different values that the files use. */
const differingVariables = async (basis: Basis, own: RuntimeEnvironment['env'], files: readonly string[]): Promise<string[]> => {
  const here = environmentOf(own, Buffer.from(basis.salt, 'base64'))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')))
  const named = new Set(texts.flatMap((text) => [...text.matchAll(/\$\{?(?:env:)?([A-Za-z_]\w*)/g)].map(([, name]) => name)))
  return differing(basis.env, here).filter((name) => named.has(name))
}

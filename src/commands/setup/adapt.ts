/** `trunkline adapt FILE`: prints the servers of a host's file as `trunkline.yaml`; secrets become variables. `--write` saves them. */
import { dirname, resolve } from 'node:path'
import { findInFile } from '../../host-files/found-in-file.ts'
import { planImport } from '../../host-files/import.ts'
import { withServers } from '../../host-files/our-file.ts'
import { usableIn } from '../../host-files/usable.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import { printFile, printJson, remark } from '../terminal/print.ts'
import { refuseChangeErrors, saveServers } from './import.ts'
import type { ImportOptions, Writing } from './import.ts'

export interface AdaptOptions extends ImportOptions {
  /** Writes into the configuration and its `.env`, as `import` does. */
  readonly write?: boolean
}

export const adapt = async (writing: Writing, named: string, options: AdaptOptions = {}): Promise<number> => {
  const { context, io, json } = writing
  const file = resolve(context.cwd, named)
  const found = await refuseChangeErrors(() => findInFile(file, context))
  if (options.write === true) return saveServers(writing, [found], options)
  const read = usableIn(found, context)
  for (const problem of [...read.problems, ...read.warnings]) remark(io, problem)
  const existing = { servers: {}, env: context.env, envFile: {}, folder: dirname(file) }
  const { servers, secrets, unset, warnings } = planImport(read.servers, existing)
  const names = [...secrets.keys(), ...unset.keys()]
  const ours = { file: 'trunkline.yaml', text: undefined, servers: {}, envFile: '.env', namesEnvFile: false, values: {} }
  const yaml = withServers(ours, { servers, values: new Map(names.map((name) => [name, ''])) })
  for (const warning of warnings) remark(io, warning)
  if (names.length > 0) remark(io, `write into .env: ${names.join(', ')}`)
  if (json)
    await printJson(io, {
      host: read.host,
      servers: Object.fromEntries(servers.map(({ key, draft }) => [key, draft])),
      variables: names,
    })
  else await printFile(io, yaml)
  if (read.problems.length > 0 && servers.length === 0)
    throw new CommandError(EXIT.config, `no server of ${named} can be used; see the reasons above`)
  return EXIT.ok
}

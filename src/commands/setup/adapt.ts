/** `trunkline adapt FILE`: the servers of a host's file as `trunkline.yaml`, on stdout. Nothing is written; secrets become variables. */
import { readFile } from 'node:fs/promises'
import { dirname, extname, basename, resolve } from 'node:path'
import { lookIn, readText } from '../../host-files/edit/editor.ts'
import { readPlace } from '../../host-files/found.ts'
import { HOSTS } from '../../host-files/hosts.ts'
import type { HostPlace } from '../../host-files/hosts.ts'
import { planImport } from '../../host-files/import.ts'
import { withServers } from '../../host-files/our-file.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import { printJson, printText, remark } from '../terminal/print.ts'
import { refusing } from './import.ts'
import type { Writing } from './import.ts'

/** Extensions of one syntax. */
const SYNTAX: Readonly<Record<string, string>> = {
  '.json': 'json',
  '.jsonc': 'json',
  '.json5': 'json',
  '.yml': 'yaml',
  '.yaml': 'yaml',
  '.toml': 'toml',
}

export const adapt = async ({ context, io, json }: Writing, named: string): Promise<number> => {
  const file = resolve(context.cwd, named)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(EXIT.config, `${named} cannot be read (${error.code})`)
  })
  const data = await refusing(async () => readText(file, text)).catch((error: unknown) => {
    throw error instanceof CommandError ? error : new CommandError(EXIT.config, `${named}: ${(error as Error).message}`)
  })
  const found = placesOf(file, context).find(({ place }) => lookIn(data, place.at) !== undefined)
  if (found === undefined)
    throw new CommandError(EXIT.config, `${named} holds no servers of a host that is known: ${Object.keys(HOSTS).join(', ')}`)
  const read = await readPlace(found.host, { ...found.place, path: file }, context)
  if (read === undefined) throw new CommandError(EXIT.config, `${named} cannot be read`)
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
      host: found.host,
      servers: Object.fromEntries(servers.map(({ key, draft }) => [key, draft])),
      variables: names,
    })
  else await printText(io, yaml)
  return read.problems.length > 0 && servers.length === 0 ? EXIT.config : EXIT.ok
}

/** Places of one syntax with this file, those of its very name first. */
const placesOf = (file: string, context: Writing['context']): readonly { readonly host: string; readonly place: HostPlace }[] => {
  const syntax = SYNTAX[extname(file)] ?? 'json'
  const all = Object.entries(HOSTS).flatMap(([host, { places }]) => places(context).map((place) => ({ host, place })))
  return all
    .filter(({ place }) => (SYNTAX[extname(place.path)] ?? 'json') === syntax)
    .toSorted((a, b) => Number(basename(b.place.path) === basename(file)) - Number(basename(a.place.path) === basename(file)))
}

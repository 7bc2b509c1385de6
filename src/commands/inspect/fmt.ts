/** `trunkline fmt`: formats the configuration, with its comments and the order of its keys. The meaning never changes. */
import { extname, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parseDocument } from 'yaml'
import type { Document } from 'yaml'
import { ConfigError } from '../../config/syntax/problems.ts'
import { parseText } from '../../config/syntax/document.ts'
import { readState, replaceFile, textOfState } from '../../host-files/edit/change.ts'
import { refuseChangeErrors } from '../setup/import.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printFile, printJson, printLines } from '../terminal/print.ts'

export interface FmtOptions {
  /** Exit code 6 if a file is not formatted. */
  readonly check?: boolean
  readonly write?: boolean
}

const FORM = { lineWidth: 0, indent: 2, indentSeq: true, flowCollectionPadding: true } as const

/** Throws `ConfigError` for text that is not YAML. */
export const formatted = (text: string, name: string): string => {
  const { problems } = parseText(text, name)
  if (problems.length > 0) throw new ConfigError(problems)
  const document = parseDocument(text, { logLevel: 'silent' })
  const plain = (parsed: Document): unknown => parsed.toJS({ maxAliasCount: -1 })
  // An empty document would become the word `null`.
  if (document.contents === null) return text
  const form = document.toString(FORM).replaceAll('\n', text.includes('\r\n') ? '\r\n' : '\n')
  // Guards against a printer that changes the meaning. `parseText` has limited the number of values behind aliases.
  return isDeepStrictEqual(plain(parseDocument(form)), plain(document)) ? form : text
}

export const fmt = async (
  { files, isFound, command, io, json, context }: Invocation,
  { check, write }: FmtOptions,
): Promise<number> => {
  if (check === true && write === true) throw new CommandError(EXIT.usage, '--check and --write exclude each other')
  const changed: string[] = []
  for (const named of files) {
    const file = resolve(context.cwd, named)
    if (!['.yaml', '.yml'].includes(extname(file)))
      throw new CommandError(EXIT.usage, `${named} is not YAML; fmt is for trunkline.yaml and the files it includes`)
    const state = await refuseChangeErrors(() => readState(file))
    if (state.bytes === undefined) {
      const reason = isFound ? `${named} cannot be read (ENOENT)` : 'no configuration found'
      throw new CommandError(EXIT.config, `${reason}; name a file with -c FILE`)
    }
    const text = textOfState(state)
    const form = formatted(text, named)
    if (form !== text) changed.push(named)
    if (write === true && form !== text) await refuseChangeErrors(() => replaceFile(state, Buffer.from(form)))
    else if (check !== true && write !== true && !json) await printFile(io, form)
  }
  if (json) await printJson(io, { changed })
  else if (check === true || write === true)
    await printLines(
      io,
      changed.length === 0 ? ['nothing to change'] : changed.map((file) => `${write === true ? 'wrote' : 'differs'} ${file}`),
    )
  if (check === true && changed.length > 0)
    throw new CommandError(EXIT.mismatch, `not formatted: ${changed.join(', ')}; format it with ${command('fmt', '--write')}`)
  return EXIT.ok
}

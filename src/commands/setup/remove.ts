/** `trunkline remove NAME`: one entry out of the configuration; comments stay. */
import { stateRoot } from '../../config/read/folders.ts'
import { nearestKey } from '../../config/syntax/nearest-key.ts'
import { nameOf } from '../../host-files/found.ts'
import { readOurFile, updateOurFile, withoutServer } from '../../host-files/our-file.ts'
import { refusing } from './import.ts'
import type { Writing } from './import.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import { printJson, printLines } from '../terminal/print.ts'

export const remove = async ({ file, context, io, json }: Writing, key: string): Promise<number> => {
  const { servers, text } = await refusing(() => readOurFile(file))
  if (text === undefined) throw new CommandError(EXIT.config, `there is no ${nameOf(file, context)}; name one with -c FILE`)
  if (!Object.hasOwn(servers, key)) {
    const near = nearestKey(key, Object.keys(servers))
    const hint = near === undefined ? `it has: ${Object.keys(servers).join(', ') || 'none'}` : `did you mean "${near}"?`
    throw new CommandError(EXIT.config, `${nameOf(file, context)} has no server "${key}"; ${hint}`)
  }
  await refusing(() => updateOurFile(file, stateRoot(context), (ours) => ({ text: withoutServer(ours, key) })))
  if (json) await printJson(io, { file, removed: key })
  else await printLines(io, [`  removed ${key} from ${nameOf(file, context)}`])
  return EXIT.ok
}

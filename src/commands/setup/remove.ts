/** `trunkline remove NAME`: removes one entry from the configuration; comments stay. */
import { suggest } from '../../config/syntax/nearest-key.ts'
import { nameOf } from '../../host-files/found.ts'
import { readIncluded } from '../../host-files/included.ts'
import { readOurFile, updateOurFile, withoutServer } from '../../host-files/our-file.ts'
import { refuseChangeErrors } from './import.ts'
import type { Writing } from './import.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import { printResult } from '../terminal/print.ts'

export const remove = async (writing: Writing, key: string): Promise<number> => {
  const { file, named, context } = writing
  const { servers, text } = await refuseChangeErrors(() => readOurFile(file, context))
  if (text === undefined)
    throw new CommandError(EXIT.config, `${nameOf(file, context)} does not exist; name a configuration with -c FILE`)
  if (!Object.hasOwn(servers, key)) {
    const place = (await readIncluded(file, named.slice(1), context)).places.get(key)
    if (place !== undefined) throw new CommandError(EXIT.config, `server "${key}" is defined at ${place}: remove it there`)
    const keys = Object.keys(servers)
    const hint = keys.length === 0 ? 'it has none' : suggest(key, keys, 'it has')
    throw new CommandError(EXIT.config, `${nameOf(file, context)} has no server "${key}"; ${hint}`)
  }
  await refuseChangeErrors(() => updateOurFile(file, context, (ours) => ({ text: withoutServer(ours, key) })))
  await printResult(writing, { file, removed: key }, () => [`  removed ${key} from ${nameOf(file, context)}`])
  return EXIT.ok
}

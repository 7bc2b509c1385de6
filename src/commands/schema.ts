/** `trunkline schema`: the JSON Schema of the configuration file, for editors and scripts. */
import { configurationJsonSchema } from '../config/json-schema.ts'
import { EXIT } from './io.ts'
import type { Io } from './io.ts'
import { printVerbatim } from './print.ts'

export const schema = async (io: Io): Promise<number> => {
  await printVerbatim(io, `${JSON.stringify(configurationJsonSchema(), null, 2)}\n`)
  return EXIT.ok
}

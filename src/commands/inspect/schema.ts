/** `trunkline schema`: the JSON Schema of the configuration file, for editors and scripts. */
import { configurationJsonSchema } from '../../config/schema/json-schema.ts'
import { EXIT } from '../terminal/io.ts'
import type { Io } from '../terminal/io.ts'
import { printVerbatim } from '../terminal/print.ts'

/** `json`: on one line. */
export const schema = async (io: Io, json: boolean): Promise<number> => {
  await printVerbatim(io, `${JSON.stringify(configurationJsonSchema(), null, json ? 0 : 2)}\n`)
  return EXIT.ok
}

/** `trunkline schema`: the JSON Schema of the configuration file, for editors and scripts. */
import { configurationJsonSchema } from '../config/json-schema.ts'
import { EXIT, print } from './io.ts'
import type { Io } from './io.ts'

export const schema = async (io: Io): Promise<number> => {
  await print(io, `${JSON.stringify(configurationJsonSchema(), null, 2)}\n`)
  return EXIT.ok
}

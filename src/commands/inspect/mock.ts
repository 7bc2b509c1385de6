/**
 * `trunkline mock`: serves a recording on stdin and stdout, for tests of hosts and agents without real servers. Speaks both eras, and
 * refuses requests that are not in the recording.
 */
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Player } from '../../observe/recorded/player.ts'
import { readRecording } from '../../observe/recorded/recorded-file.ts'
import { asError } from '../../values/as-error.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Io } from '../terminal/io.ts'
import { printJsonText, remark } from '../terminal/print.ts'

export interface MockOptions {
  /** Accepts calls only in the recorded order and with the recorded arguments. */
  readonly strict?: boolean
}

export const mock = async (io: Io, file: string, { strict }: MockOptions): Promise<number> => {
  const recorded = await readFile(file, 'utf8')
    .then(readRecording)
    .catch((error: unknown) => {
      throw new CommandError(EXIT.config, `${file} cannot be served: ${asError(error).message}`)
    })
  if (recorded.calls.length === 0)
    throw new CommandError(EXIT.config, `${file} contains no call with both its request and its answer`)
  const player = new Player(recorded, strict === true)
  remark(io, `serving ${recorded.tools.length} tools and ${recorded.calls.length} recorded calls`)
  const lines = createInterface({ input: io.stdin })
  io.interrupted.addEventListener('abort', () => lines.close())
  for await (const line of lines) {
    const answer = player.answer(line)
    if (answer !== undefined) await printJsonText(io, answer)
  }
  if (strict === true && player.left > 0) throw new CommandError(EXIT.mismatch, `${player.left} recorded calls were not made`)
  return EXIT.ok
}

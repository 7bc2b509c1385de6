/**
 * `trunkline mock`: serves a recording on stdin and stdout, for tests of hosts and agents without real servers. Speaks both eras, and
 * refuses requests that are not in the recording.
 */
import { readFile } from 'node:fs/promises'
import { Player } from '../../observe/recorded/player.ts'
import { readRecording } from '../../observe/recorded/recorded-file.ts'
import { asError } from '../../values/as-error.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import { LineFramer } from '../../wire/framing/lines.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Io } from '../terminal/io.ts'
import { printJsonText, remark } from '../terminal/print.ts'
import { counted } from '../../values/counted.ts'

export interface MockOptions {
  /** Accepts calls only in the recorded order and with the recorded arguments. */
  readonly strict?: boolean
}

export const mock = async (io: Io, file: string, { strict }: MockOptions): Promise<number> => {
  const recorded = await readFile(file)
    .then((bytes) => readRecording(decodeUtf8(bytes) ?? ''))
    .catch((error: unknown) => {
      throw new CommandError(EXIT.config, `${file} cannot be served: ${asError(error).message}`)
    })
  if (recorded.calls.length === 0)
    throw new CommandError(EXIT.config, `${file} contains no call with both its request and its answer`)
  const player = new Player(recorded, strict === true)
  remark(io, `serving ${counted(recorded.tools.length, 'tool')} and ${counted(recorded.calls.length, 'recorded call')}`)
  for await (const line of linesOf(io)) {
    const answer = player.answer(line)
    if (answer !== undefined) await printJsonText(io, answer)
  }
  if (strict === true && player.left > 0)
    throw new CommandError(EXIT.mismatch, `${counted(player.left, 'recorded call')} not made`)
  return EXIT.ok
}

/** The lines of stdin, until it ends or the command is interrupted. Not `node:readline`, whose lines also end at U+2028. */
const linesOf = async function* ({ stdin, interrupted }: Pick<Io, 'stdin' | 'interrupted'>): AsyncGenerator<string> {
  const read: string[] = []
  const line = (bytes: Buffer): void => void read.push(bytes.toString())
  const framer = new LineFramer({ line, overflow: () => {}, discarded: () => {} }, { maxBytes: Infinity })
  const stop = (): void => void stdin.destroy()
  interrupted.addEventListener('abort', stop)
  const chunks: AsyncIterable<Buffer> = stdin
  try {
    for await (const chunk of chunks) {
      framer.push(chunk)
      yield* read.splice(0)
    }
    framer.end()
    yield* read
  } catch (error) {
    if (!interrupted.aborted) throw error
  }
}

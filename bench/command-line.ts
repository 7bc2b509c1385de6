/** Reads the command line. A wrong argument gives one sentence with the remedy before anything is started, and exit code 2. */
import { access, constants } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'

/** Something on the command line that cannot be meant. */
export class UsageError extends Error {}

/** What `parseArgs` finds; unknown options, values that are missing and words that are no option end in a `UsageError`. */
export const parseOptions = <T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) => {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error })
  }
}

/** A number above zero; whole unless it may have parts. */
export const numberOf = (option: string, text: string, mayHaveParts = false): number => {
  const number = text.trim() === '' ? Number.NaN : Number(text)
  if (mayHaveParts ? number > 0 && number < Infinity : Number.isInteger(number) && number >= 1) return number
  throw new UsageError(`${option}: expected a ${mayHaveParts ? 'number above 0' : 'whole number from 1'}, got ${text}`)
}

/** The file can be made: found out before a run of minutes, not after. */
export const awaitWritable = async (option: string, file: string): Promise<void> => {
  const folder = dirname(file)
  await access(folder, constants.W_OK).catch(() => {
    throw new UsageError(`${option}: ${folder} is no folder that can be written to; make it, or name another`)
  })
}

/** Runs a program of the bench; `work` says whether all was well. `usage` is what `--help` prints. */
export const runProgram = async (usage: string, work: () => Promise<boolean>): Promise<void> => {
  if (process.argv.includes('--help')) return void process.stdout.write(`${usage}\n`)
  try {
    process.exitCode = (await work()) ? 0 : 1
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\n--help says what there is.\n`)
    process.exitCode = 2
  }
}

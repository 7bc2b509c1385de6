/** Turns the error of a command into an exit code, and a text for people or programs. */
import { CommanderError } from 'commander'
import type { Command } from 'commander'
import { AdminFailure } from '../admin/refusal.ts'
import { CommandError, EXIT } from '../commands/terminal/io.ts'
import type { Io } from '../commands/terminal/io.ts'
import { remark, remarkJson } from '../commands/terminal/print.ts'
import { nearestKey } from '../config/syntax/nearest-key.ts'
import { ConfigError } from '../config/syntax/problems.ts'
import { operatorCommand } from '../operator-command.ts'

/** Prints the error and returns the exit code; with `--json` the last line is a JSON object. */
export const report = (error: unknown, io: Io, json: boolean): number => {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok
  const { exitCode, message } = explain(error, io)
  // Commander has already printed errors of the command line.
  if (!(error instanceof CommanderError)) remark(io, message)
  const problems = error instanceof ConfigError ? { problems: error.problems } : {}
  if (json) remarkJson(io, { error: { exitCode, message, ...problems } })
  return exitCode
}

const explain = (error: unknown, { interrupted }: Io): { readonly exitCode: number; readonly message: string } => {
  if (error instanceof ConfigError) return { exitCode: EXIT.config, message: error.message }
  if (error instanceof CommandError) return { exitCode: error.exitCode, message: error.message }
  if (error instanceof CommanderError) return { exitCode: EXIT.usage, message: error.message }
  if (error instanceof AdminFailure) return { exitCode: EXIT.unreachable, message: error.message }
  if (interrupted.aborted && error instanceof Error && error.name === 'AbortError')
    return { exitCode: EXIT.interrupted, message: 'interrupted' }
  const words = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { exitCode: EXIT.usage, message: `unexpected: ${words}` }
}

/** `isNamed`: `up` was typed, so the word is its argument. */
export const unknownCommand = (word: string, program: Command, isNamed: boolean): CommandError => {
  if (isNamed) return new CommandError(EXIT.usage, `up takes no "${word}"; name a configuration with -c FILE`)
  const known = program.commands.map((command) => command.name())
  if (known.includes(word)) {
    const message = `"${word}" comes after options of "up", which it does not take; put it first, with its own options`
    return new CommandError(EXIT.usage, message)
  }
  const near = nearestKey(word, known)
  const hint = near === undefined ? `${operatorCommand([], '--help')} shows every command` : `did you mean "${near}"?`
  return new CommandError(EXIT.usage, `unknown command "${word}"; ${hint}`)
}

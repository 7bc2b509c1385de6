/** The command line: parses the arguments, runs one command, and turns errors into texts and an exit code. */
import { Command } from 'commander'
import { addCommands } from './cli/command-table.ts'
import { withCommon } from './cli/common-options.ts'
import { report } from './cli/errors.ts'
import { makeInvocations } from './cli/invocation.ts'
import { detachedIo, EXIT } from './commands/terminal/io.ts'
import type { Io } from './commands/terminal/io.ts'
import { printText, remark } from './commands/terminal/print.ts'
import { readRuntimeEnvironment } from './config/runtime-environment.ts'
import { operatorCommand } from './operator-command.ts'
import { VERSION } from './version.ts'

/** Runs one command and returns its exit code. `readEnvironment`: reads the environment of the process. */
export const run = async (
  args: readonly string[],
  io: Io,
  readEnvironment: typeof readRuntimeEnvironment = readRuntimeEnvironment,
): Promise<number> => {
  let exitCode: number = EXIT.ok
  const words = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length)
  const behindDashes = Math.max(args.length - words.length - 1, 0)
  const program = makeProgram(io, words, behindDashes, readEnvironment, (code) => (exitCode = code))
  try {
    await program.parseAsync([...args], { from: 'user' })
    return exitCode
  } catch (error) {
    return report(error, io, isJson(words))
  }
}

const isJson = (words: readonly string[]): boolean => words.includes('--json')

/** `words`: the arguments before `--`; `behindDashes`: the number of those after it. */
const makeProgram = (
  io: Io,
  words: readonly string[],
  behindDashes: number,
  readEnvironment: typeof readRuntimeEnvironment,
  end: (exitCode: number) => void,
): Command => {
  const program = new Command('trunkline')
  program
    .description('One MCP endpoint for every host, many MCP servers behind it.')
    .version(VERSION)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ writeOut: (text) => void printText(io, text), writeErr: (text) => remark(io, text) })
    .showHelpAfterError(`(${operatorCommand([], '--help')} shows every command and option)`)
  withCommon(program)
  const json = isJson(words)
  const isNamed = words.includes('up')
  addCommands(program, { io, json, behindDashes, isNamed, end, ...makeInvocations(program, io, json, readEnvironment) })
  for (const command of program.commands) showOwnHelp(command)
  return program
}

/** After an error of its arguments. `up` is also what runs without a command, and keeps the help of all. */
const showOwnHelp = (command: Command, ...parents: readonly string[]): void => {
  const words = [...parents, command.name()]
  const hint =
    words[0] === 'add' ? `options of the command go behind --: ${operatorCommand([], 'add', 'NAME', '--', 'COMMAND')}; ` : ''
  if (words[0] !== 'up')
    command.showHelpAfterError(`(${hint}${operatorCommand([], ...words, '--help')} shows its arguments and options)`)
  for (const below of command.commands) showOwnHelp(below, ...words)
}

/** One command, as in its help. */
export interface CommandRow {
  /** `token new`, `check`. */
  readonly name: string
  /** `[servers...]`. */
  readonly args: string
  readonly description: string
  readonly options: readonly { readonly flags: string; readonly description: string }[]
}

/** Every command, in the order of the help: for the reference and for tests. Runs nothing. */
export const commandTable = (): readonly CommandRow[] => {
  const program = makeProgram(detachedIo(), [], 0, readRuntimeEnvironment, () => undefined)
  const rowsOf = (command: Command, before: string): CommandRow[] =>
    command.commands.flatMap((one) => {
      const name = `${before}${one.name()}`
      if (one.commands.length > 0) return rowsOf(one, `${name} `)
      const args = one.registeredArguments.map((argument) => {
        const shown = `${argument.name()}${argument.variadic ? '...' : ''}`
        return argument.required ? `<${shown}>` : `[${shown}]`
      })
      const options = one.options.map(({ flags, description }) => ({ flags, description }))
      return [{ name, args: args.join(' '), description: one.description(), options }]
    })
  return rowsOf(program, '')
}

/** The command line: reads the words, finds the configuration, runs one command, turns what went wrong into words and a code. */
import { Command, CommanderError } from 'commander'
import { findConfiguration, userConfiguration } from './config/find.ts'
import { loadConfiguration } from './config/load.ts'
import type { Configuration } from './config/options.ts'
import { ConfigError } from './config/problems.ts'
import { readSurroundings } from './config/surroundings.ts'
import type { Context } from './config/surroundings.ts'
import { CommandError, EXIT } from './commands/io.ts'
import type { Io } from './commands/io.ts'
import { VERSION } from './version.ts'

interface CommonOptions {
  readonly config?: string[]
  readonly listen?: string
  readonly state?: string
  readonly allowUnauthenticatedNetwork?: boolean
}

/** Runs one command and returns its exit code. */
export const run = async (args: readonly string[], io: Io): Promise<number> => {
  let exitCode: number = EXIT.ok
  const program = makeProgram(io, (code) => (exitCode = code))
  try {
    await program.parseAsync([...args], { from: 'user' })
    return exitCode
  } catch (error) {
    return report(error, io)
  }
}

const makeProgram = (io: Io, end: (exitCode: number) => void): Command => {
  const program = new Command('trunkline')
    .description('One MCP endpoint for every host, many MCP servers behind it.')
    .version(VERSION)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => io.stderr.write(text) })
  const withConfiguration = (command: Command): Command =>
    command
      .option('-c, --config <file...>', 'configuration: trunkline.yaml, or a host file such as .mcp.json (repeatable)')
      .option('--state <folder>', 'where to remember inventories and verdicts')
  withConfiguration(program.command('up', { isDefault: true }).description('serve the configuration'))
    .option('--listen <address>', 'HOST:PORT instead of what the configuration says')
    .option('--allow-unauthenticated-network', 'listen beyond this machine without authentication')
    .action(async (options: CommonOptions) => {
      const context = readSurroundings(overridesOf(options))
      const read = await reader(options, context, true)
      const { up } = await import('./commands/up.ts')
      end(await up(await read(), read, context, io))
    })
  withConfiguration(program.command('stdio').description('serve one host on stdin and stdout')).action(
    async (options: CommonOptions) => {
      const context = readSurroundings(overridesOf(options))
      const read = await reader(options, context, false)
      const { stdio } = await import('./commands/stdio.ts')
      end(await stdio(await read(), context, io))
    },
  )
  return program
}

const overridesOf = ({ listen, state, allowUnauthenticatedNetwork }: CommonOptions): NonNullable<Context['overrides']> => ({
  listen,
  state,
  allowUnauthenticatedNetwork,
})

/** How to read the configuration, now and again on reload. A typed command looks in the working folder; `stdio` never does. */
const reader = async (options: CommonOptions, context: Context, looksAround: boolean): Promise<() => Promise<Configuration>> => {
  const { cwd, home, env, uid } = context
  const found = looksAround ? findConfiguration(cwd, home, env, uid) : userConfiguration(home, env)
  const files = options.config ?? [await found].filter((file) => file !== undefined)
  if (files.length === 0)
    throw new CommandError(EXIT.config, 'no configuration found: name one with -c FILE, or write trunkline.yaml')
  return () => loadConfiguration({ files }, context)
}

const report = (error: unknown, io: Io): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  if (error instanceof ConfigError) {
    io.stderr.write(`${error.message}\n`)
    return EXIT.config
  }
  if (error instanceof CommandError) {
    io.stderr.write(`${error.message}\n`)
    return error.exitCode
  }
  io.stderr.write(`unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return EXIT.usage
}

/** The command line: reads the words, finds the configuration, runs one command, turns what went wrong into words and a code. */
import { resolve } from 'node:path'
import { Command, CommanderError } from 'commander'
import { adminPlace } from './admin/socket.ts'
import { findConfiguration, userConfiguration } from './config/find.ts'
import { configurationId, runtimeRoot } from './config/folders.ts'
import { loadConfiguration } from './config/load.ts'
import { nearestKey } from './config/nearest-key.ts'
import { ConfigError } from './config/problems.ts'
import { readSurroundings } from './config/surroundings.ts'
import type { Context } from './config/surroundings.ts'
import type { CheckOptions } from './commands/check.ts'
import { CommandError, EXIT } from './commands/io.ts'
import type { Invocation, Io, Read } from './commands/io.ts'
import { printText, remark, remarkJson } from './commands/print.ts'
import type { StdioOptions } from './commands/stdio.ts'
import type { TokenOptions } from './commands/token.ts'
import { operatorCommand } from './operator-command.ts'
import { VERSION } from './version.ts'

interface CommonOptions {
  readonly config?: readonly string[]
  readonly listen?: string
  readonly state?: string
  readonly json?: boolean
  readonly allowUnauthenticatedNetwork?: boolean
}

interface CallOptions {
  readonly args?: string
  readonly toolset?: string
}

/** Runs one command and returns its exit code. `around`: what is known of the process. */
export const run = async (
  args: readonly string[],
  io: Io,
  around: typeof readSurroundings = readSurroundings,
): Promise<number> => {
  let exitCode: number = EXIT.ok
  const words = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length)
  const json = words.includes('--json')
  const program = makeProgram(io, json, words.includes('up'), around, (code) => (exitCode = code))
  try {
    await program.parseAsync([...args], { from: 'user' })
    return exitCode
  } catch (error) {
    return report(error, io, json)
  }
}

const makeProgram = (
  io: Io,
  json: boolean,
  isNamed: boolean,
  around: typeof readSurroundings,
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

  const command = (words: string, description: string, isDefault = false): Command =>
    withCommon(program.command(words, { isDefault }).description(description))
  /** What a command is given; its own options win over those before it. */
  const invoked = async (own: CommonOptions, looksAround = true, withoutLock = false): Promise<Invocation> => {
    const before = program.opts<CommonOptions>()
    const options = { ...before, ...own, config: [...(before.config ?? []), ...(own.config ?? [])] }
    const { config: named, listen, state, allowUnauthenticatedNetwork } = options
    const context = around({ named, listen, state, allowUnauthenticatedNetwork, withoutLock })
    const files = await filesOf(named, context, looksAround)
    const id = configurationId(resolve(context.cwd, files[0]))
    const place = adminPlace({ id, runtimeDir: runtimeRoot(context) }, context.uid, context.platform)
    const read = async (): Promise<Read> => {
      const sinceMs = Date.now()
      const configuration = await loadConfiguration({ files }, context)
      io.redactor.learn(configuration.secrets)
      return { configuration, sinceMs }
    }
    return { files, command: (...words) => operatorCommand(named, ...words), place, read, context, io, json }
  }

  command('up', 'serve the configuration (what happens without a command)', true)
    .option('--listen <address>', 'HOST:PORT instead of what the configuration says')
    .option('--allow-unauthenticated-network', 'listen beyond this machine without authentication')
    .allowExcessArguments()
    .action(async (options: CommonOptions, { args }: Command) => {
      if (args[0] !== undefined) throw unknownCommand(args[0], program, isNamed)
      const { up } = await import('./commands/up.ts')
      end(await up(await invoked(options)))
    })
  command('stdio', 'serve one host on stdin and stdout')
    .option('--inline', 'start the servers here, even where a process of this configuration runs')
    .option('--server <key>', 'this server alone, under its own names')
    .option('--toolset <name>', 'this toolset')
    .action(async (options: CommonOptions & StdioOptions) => {
      const { stdio } = await import('./commands/stdio.ts')
      end(await stdio(await invoked(options, false), options))
    })
  command('check', 'is the configuration right?')
    .option('--live', 'start its servers and see whether they work')
    .option('--host <list>', 'would these hosts take the tools as they are? claude-desktop,cursor,… or all')
    .option('--locked', 'do its servers offer what the lock file says? Starts them unless a process runs')
    .action(async (options: CommonOptions & CheckOptions) => {
      const { check } = await import('./commands/check.ts')
      end(await check(await invoked(options), options))
    })
  command('lock', 'write the lock file: definitions as they are now, approved (lock.file)')
    .argument('[servers...]', 'keys; all if left out')
    .option('--apps', 'also what servers list to hosts that run MCP Apps')
    .action(async (servers: readonly string[], options: CommonOptions & { readonly apps?: boolean }) => {
      const { lock } = await import('./commands/lock.ts')
      const { read } = await invoked(options)
      end(await lock(await invoked(options, true, true), { servers, apps: options.apps === true }, read))
    })
  command('diff', 'how definitions differ from what was approved')
    .argument('[name]', 'exposed or original name, or key of a server; everything if left out')
    .action(async (name: string | undefined, options: CommonOptions) => {
      const { diff } = await import('./commands/lock.ts')
      end(await diff(await invoked(options), name))
    })
  command('schema', 'print the JSON Schema of the configuration').action(async () => {
    const { schema } = await import('./commands/schema.ts')
    end(await schema(io))
  })
  program
    .command('token')
    .description('static tokens for hosts')
    .command('new')
    .description('make one, and the line of the configuration that lets it in')
    .option('--id <name>', 'what names it', 'host')
    .option('--toolset <name>', 'a toolset it may choose (repeatable)', collect)
    .option('--expires <date>', 'the last day it is good, such as 2027-06-30')
    .option('--json', 'answer for machines')
    .action(async (options: TokenOptions) => {
      const { newToken } = await import('./commands/token.ts')
      end(await newToken(io, json, options, Date.now()))
    })
  command('tools', 'what hosts see, and what it costs')
    .argument('[query...]', 'words that the name, the server or the description holds')
    .option('--toolset <name>', 'of this toolset')
    .action(async (query: readonly string[], options: CommonOptions & { readonly toolset?: string }) => {
      const { tools } = await import('./commands/tools.ts')
      end(await tools(await invoked(options), query.join(' '), options.toolset))
    })
  command('call', 'call one tool through the gateway')
    .argument('<tool>', 'its exposed name')
    .argument('[key=value...]', 'its arguments, read by its schema')
    .option('--args <json>', 'its arguments as one JSON object')
    .option('--toolset <name>', 'as a host of this toolset')
    .action(async (tool: string, pairs: readonly string[], options: CommonOptions & CallOptions) => {
      const { call } = await import('./commands/call.ts')
      end(await call(await invoked(options), tool, pairs, options.args, options.toolset))
    })
  command('ps', 'state of the running process and its servers').action(async (options: CommonOptions) => {
    const { ps } = await import('./commands/running.ts')
    end(await ps(await invoked(options)))
  })
  command('login', 'sign in at a server: prints the link, and waits')
    .argument('<server>', 'its key')
    .option('--open', 'open the link in a browser')
    .action(async (server: string, options: CommonOptions & { readonly open?: boolean }) => {
      const { login } = await import('./commands/login.ts')
      end(await login(await invoked(options), server, options.open === true))
    })
  command('why', 'the rules that show, hide or rename something, with their places')
    .argument('<name>', 'of a tool or prompt, or a URI; as hosts or as the server call it')
    .option('--toolset <name>', 'what this toolset makes of it; all of them if left out')
    .action(async (name: string, options: CommonOptions & { readonly toolset?: string }) => {
      const { why } = await import('./commands/why.ts')
      end(await why(await invoked(options), name, options.toolset))
    })
  command('plan', 'what a reload would change of the running process, or what another file would (-c FILE)')
    .option('--running <file>', 'compare with the process that runs this file')
    .action(async (options: CommonOptions & { readonly running?: string }) => {
      const { plan } = await import('./commands/plan.ts')
      end(await plan(await invoked(options), options.running))
    })
  command('reload', 'make the running process read its files again')
    .option('--dry-run', 'show what it would change, as plan does')
    .action(async (options: CommonOptions & { readonly dryRun?: boolean }) => {
      const { plan, reload } = await import('./commands/plan.ts')
      end(await (options.dryRun === true ? plan(await invoked(options)) : reload(await invoked(options))))
    })
  command('approve', 'take changed definitions as the true ones (lock.on_change); with a lock file, write them there')
    .argument('<server>', 'its key')
    .argument('[name]', 'of a tool, as the server calls it; all that changed if left out')
    .action(async (server: string, name: string | undefined, options: CommonOptions) => {
      const { approve } = await import('./commands/running.ts')
      end(await approve(await invoked(options), await invoked(options, true, true), server, name))
    })
  command('restart', 'restart one server of the running process')
    .argument('<server>', 'its key')
    .action(async (server: string, options: CommonOptions) => {
      const { restart } = await import('./commands/running.ts')
      end(await restart(await invoked(options), server))
    })
  return program
}

/** `isNamed`: `up` was written, so the word was meant for it. */
const unknownCommand = (word: string, program: Command, isNamed: boolean): CommandError => {
  if (isNamed) return new CommandError(EXIT.usage, `up takes no "${word}"; name a configuration with -c FILE`)
  const near = nearestKey(
    word,
    program.commands.map((command) => command.name()),
  )
  const hint = near === undefined ? `${operatorCommand([], '--help')} shows every command` : `did you mean "${near}"?`
  return new CommandError(EXIT.usage, `unknown command "${word}"; ${hint}`)
}

const withCommon = (command: Command): Command =>
  command
    .option('-c, --config <file>', 'configuration: trunkline.yaml, or a host file such as .mcp.json (repeatable)', collect)
    .option('--state <folder>', 'where to remember inventories and verdicts')
    .option('--json', 'answer for machines; on failure the last line on stderr is one JSON object')

/** Of an option that may be repeated. */
const collect = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value]

/** Which configuration is meant. A typed command looks in the working folder; `stdio` never does. */
const filesOf = async (
  named: readonly string[],
  { cwd, home, env, uid }: Context,
  looksAround: boolean,
): Promise<readonly string[]> => {
  if (named.length > 0) return named
  const found = await (looksAround ? findConfiguration(cwd, home, env, uid) : userConfiguration(home, env))
  if (found !== undefined) return [found]
  throw new CommandError(EXIT.config, 'no configuration found: name one with -c FILE, or write trunkline.yaml')
}

/** The exit code, and words for a person; under `--json` the last line is one object for machines. */
const report = (error: unknown, io: Io, json: boolean): number => {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok
  const { exitCode, message } = explain(error)
  // What is wrong with the words themselves has been said, with the way to the help.
  if (!(error instanceof CommanderError)) remark(io, message)
  const problems = error instanceof ConfigError ? { problems: error.problems } : {}
  if (json) remarkJson(io, { error: { exitCode, message, ...problems } })
  return exitCode
}

const explain = (error: unknown): { readonly exitCode: number; readonly message: string } => {
  if (error instanceof ConfigError) return { exitCode: EXIT.config, message: error.message }
  if (error instanceof CommandError) return { exitCode: error.exitCode, message: error.message }
  if (error instanceof CommanderError) return { exitCode: EXIT.usage, message: error.message }
  const words = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { exitCode: EXIT.usage, message: `unexpected: ${words}` }
}

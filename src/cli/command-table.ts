/** Every command with its arguments and options, in the order of the help. The code of a command is loaded when it is called. */
import type { Command } from 'commander'
import type { DoctorOptions } from '../commands/doctor/doctor.ts'
import type { CanOptions } from '../commands/inspect/can.ts'
import type { CheckOptions } from '../commands/inspect/check.ts'
import type { FmtOptions } from '../commands/inspect/fmt.ts'
import type { MockOptions } from '../commands/inspect/mock.ts'
import type { ReloadOptions } from '../commands/inspect/plan.ts'
import type { ToolsOptions } from '../commands/inspect/tools.ts'
import type { WhyOptions } from '../commands/inspect/why.ts'
import type { CallOptions } from '../commands/running/call.ts'
import type { UpOptions } from '../commands/serve/up.ts'
import type { AdaptOptions } from '../commands/setup/adapt.ts'
import type { PsOptions } from '../commands/running/servers.ts'
import type { LogsOptions } from '../commands/running/logs.ts'
import type { ReplayOptions } from '../commands/running/replay.ts'
import type { TailOptions } from '../commands/running/tail.ts'
import type { TokenOptions } from '../commands/running/token.ts'
import type { TopOptions } from '../commands/running/top.ts'
import type { StdioOptions } from '../commands/serve/stdio.ts'
import type { AddOptions } from '../commands/setup/add.ts'
import type { ConnectOptions } from '../commands/setup/connect.ts'
import type { ImportOptions } from '../commands/setup/import.ts'
import type { Io } from '../commands/terminal/io.ts'
import { collect, withCommon } from './common-options.ts'
import type { CommonOptions } from './common-options.ts'
import { unknownCommand } from './errors.ts'
import type { Invocations } from './invocation.ts'

const ALLOW_FAULTS = 'inject the faults of the configuration'

/** The input of all commands of one run. */
export interface Commands extends Invocations {
  readonly io: Io
  /** `--json`. */
  readonly json: boolean
  /** Number of arguments after `--`. */
  readonly behindDashes: number
  /** `up` was typed, so that a word without a command is its argument. */
  readonly isNamed: boolean
  /** Receives the exit code. */
  readonly end: (exitCode: number) => void
}

export const addCommands = (
  program: Command,
  { io, json, behindDashes, isNamed, end, invoked, writing, connecting }: Commands,
): void => {
  const command = (words: string, description: string, isDefault = false): Command =>
    withCommon(program.command(words, { isDefault }).description(description))
  command('up', 'serve the configuration (the default command)', true)
    .option('--listen <address>', 'HOST:PORT in place of the addresses of the configuration')
    .option('--stdio', 'also serve one host on stdin and stdout; ends when it disconnects')
    .option(
      '--from <host>',
      'serve the servers of this host or file of a host, read-only, in place of the configuration (repeatable)',
      collect,
    )
    .option('--watch', 'reload when a file changes, overrides reload.watch; also watches files of hosts that are served')
    .option('--no-watch', 'reload on request only')
    .option('--open', 'open the dashboard in a browser')
    .option('--allow-unauthenticated-network', 'listen beyond this machine without authentication')
    .option('--allow-faults', ALLOW_FAULTS)
    .allowExcessArguments()
    .action(async (options: CommonOptions & UpOptions, { args }: Command) => {
      if (args[0] !== undefined) throw unknownCommand(args[0], program, isNamed)
      const { up } = await import('../commands/serve/up.ts')
      end(await up(await invoked(options, { looksAround: options.stdio !== true }), options))
    })
  command('stdio', 'serve one host on stdin and stdout')
    .option('--inline', 'start the servers here, even if a process of this configuration runs')
    .option('--server <key>', 'this server only, under its own names')
    .option('--toolset <name>', 'this toolset only')
    .option('--url <url>', 'the server at this URL only, without a configuration')
    .option('-H, --header <header>', 'with --url: a header, as "Name: value" (repeatable)', collect)
    .option('--allow-faults', ALLOW_FAULTS)
    .action(async (options: CommonOptions & StdioOptions) => {
      const { bridge, stdio } = await import('../commands/serve/stdio.ts')
      const invocation = await invoked(options, { looksAround: false })
      end(await (options.url === undefined ? stdio(invocation, options) : bridge(invocation, options)))
    })
  command('check', 'check the configuration (also: validate)')
    .alias('validate')
    .option('--live', 'start its servers and check whether they work')
    .option('--strict', 'warnings count as errors')
    .option('--host <list>', 'check the tools against the limits of these hosts: claude-desktop,cursor,… or all')
    .option('--allow-faults', ALLOW_FAULTS)
    .option('--locked', 'check whether its servers match the lock file; starts them unless a process runs')
    .action(async (options: CommonOptions & CheckOptions) => {
      const { check } = await import('../commands/inspect/check.ts')
      end(await check(await invoked(options), options))
    })
  command('lock', 'write the current definitions to the lock file, as approved (lock.file)')
    .argument('[servers...]', 'keys; default: all')
    .option('--apps', 'also the lists for hosts with MCP Apps')
    .action(async (servers: readonly string[], options: CommonOptions & { readonly apps?: boolean }) => {
      const { lock } = await import('../commands/inspect/lock.ts')
      const { read } = await invoked(options)
      end(await lock(await invoked(options, { withoutLock: true }), { servers, apps: options.apps === true }, read))
    })
  command('diff', 'how definitions differ from the approved ones')
    .argument('[name]', 'exposed or original name, or key of a server; default: all')
    .action(async (name: string | undefined, options: CommonOptions) => {
      const { diff } = await import('../commands/inspect/lock.ts')
      const { read } = await invoked(options, { withoutSecrets: true })
      end(await diff(await invoked(options), name, read))
    })
  for (const word of ['init', 'import'] as const)
    command(
      word,
      word === 'init'
        ? 'write the servers of hosts to trunkline.yaml in this folder'
        : 'add the servers of hosts to the configuration',
    )
      .argument('[hosts...]', 'claude-code, cursor, …; default: all that are found')
      .option('--user', 'for all projects: write to the configuration folder of the user')
      .option('--dry-run', 'show what would be written')
      .option('-y, --yes', 'do not ask')
      .action(async (hosts: readonly string[], options: CommonOptions & ImportOptions & { readonly user?: boolean }) => {
        const { importServers } = await import('../commands/setup/import.ts')
        end(await importServers(await writing(options, word === 'init'), hosts, options))
      })
  command('add', 'add one server: NAME URL, NAME -- COMMAND, a name in the registry, ./server.json, ./x.mcpb')
    .argument('<source...>', 'name, then URL or command; or one of the other forms')
    .option('-e, --env <name=value>', 'a variable of its environment (repeatable)', collect)
    .option('-H, --header <header>', 'a header, as "Name: value" (repeatable)', collect)
    .option('-t, --transport <kind>', 'stdio, http or sse')
    .option('--prefix <prefix>', 'prefix of its exposed names')
    .option('--as <name>', 'its key; default: made from its name')
    .option('--use <kind>', 'of a server.json: remote, npm, pypi, nuget or oci')
    .option('--user', 'add it to the configuration of the user')
    .option('--force', 'replace a server of this name, or add the same server twice')
    .option('-y, --yes', 'do not ask')
    .action(async (words: readonly string[], options: CommonOptions & AddOptions & { readonly user?: boolean }) => {
      const { unnamed } = await import('../commands/setup/server-source.ts')
      if (behindDashes > 0 && words.length === behindDashes) throw unnamed(words)
      const { add } = await import('../commands/setup/add.ts')
      const typed = behindDashes > 0 ? {} : { typed: program.args.slice(1) }
      end(await add(await writing(options), words, { ...options, ...typed }))
    })
  command('remove', 'remove one server from the configuration')
    .argument('<server>', 'its key')
    .option('--user', 'remove it from the configuration of the user')
    .action(async (server: string, options: CommonOptions & { readonly user?: boolean }) => {
      const { remove } = await import('../commands/setup/remove.ts')
      end(await remove(await writing(options), server))
    })
  command('connect', 'add Trunkline to the file of a host: shows the difference, makes a backup')
    .argument('[hosts...]', 'claude-code, claude-desktop, vscode, cursor, …')
    .option('--all', 'every installed host')
    .option('--scope <scope>', 'user, local or project: which of its files')
    .option('--toolset <name>', 'this toolset')
    .option('--http', 'connect to the URL of the running process; else the host starts trunkline itself')
    .option('--stdio', 'the host starts trunkline itself (default)')
    .option('--token-env <name>', 'with --http: the variable with a token, for a host without sign-in')
    .option('--move', 'move its own servers behind Trunkline: import them, and remove them there')
    .option('--no-move', 'leave its own servers unchanged, and do not ask')
    .option('--print', 'print the new entry, and write nothing')
    .option('--link', 'print an install link (VS Code, Cursor)')
    .option('--wait <duration>', 'how long to wait for its first request, which is then shown (on a terminal: 2m)')
    .option('--no-wait', 'do not wait')
    .option('-y, --yes', 'do not ask')
    .action(async (hosts: readonly string[], options: CommonOptions & ConnectOptions) => {
      const { connect } = await import('../commands/setup/connect.ts')
      end(await connect(await connecting(options), hosts, options))
    })
  command('disconnect', 'remove Trunkline from the file of a host: undoes the changes of connect')
    .argument('[hosts...]', 'as for connect')
    .option('--all', 'every host')
    .option('--scope <scope>', 'user, local or project: which of its files; default: all')
    .option('-y, --yes', 'do not ask')
    .action(async (hosts: readonly string[], options: CommonOptions & ConnectOptions) => {
      const { disconnect } = await import('../commands/setup/connect.ts')
      end(await disconnect(await connecting(options), hosts, options))
    })
  command('fmt', 'print the configuration formatted, with its comments')
    .option('--check', 'only check whether it is formatted')
    .option('--write', 'write it into the file')
    .action(async (options: CommonOptions & FmtOptions) => {
      const { fmt } = await import('../commands/inspect/fmt.ts')
      end(await fmt(await invoked(options), options))
    })
  command('adapt', "print the servers of a host's file as a configuration")
    .argument('<file>', '.mcp.json, mcp.json, config.toml, …')
    .option('--write', 'write them to the configuration, and their secrets to .env, as import does')
    .option('--dry-run', 'with --write: show what would be written')
    .option('-y, --yes', 'do not ask')
    .action(async (file: string, options: CommonOptions & AdaptOptions) => {
      const { adapt } = await import('../commands/setup/adapt.ts')
      end(await adapt(await writing(options), file, options))
    })
  command('doctor', 'find problems of the environment that keep servers from working, with remedies')
    .option('--fix', 'repair what can be repaired safely')
    .action(async (options: CommonOptions & DoctorOptions) => {
      const { doctor } = await import('../commands/doctor/doctor.ts')
      end(await doctor(await invoked(options, { takesNone: true }), options))
    })
  command('logs', 'stderr and log messages of servers')
    .argument('[servers...]', 'keys; default: all')
    .option('-f, --follow', 'also print new lines')
    .option('-n, --lines <count>', 'at most this many of the kept lines', '200')
    .option('--since <time>', 'lines of the last 10m, or since a time such as 2026-11-22T20:15')
    .action(async (servers: readonly string[], options: CommonOptions & LogsOptions) => {
      const { logs } = await import('../commands/running/logs.ts')
      end(await logs(await invoked(options), servers, options))
    })
  command('completion', 'print a script that completes commands and options in a shell')
    .argument('<shell>', 'bash, zsh, fish or powershell')
    .action(async (shell: string) => {
      const { completion } = await import('../commands/inspect/completion.ts')
      end(await completion(io, program, shell, json))
    })
  command('schema', 'print the JSON Schema of the configuration').action(async () => {
    const { schema } = await import('../commands/inspect/schema.ts')
    end(await schema(io, json))
  })
  const token = program.command('token').description('make or explain tokens of hosts')
  withCommon(token.command('explain'))
    .description('read a token from stdin and print each check of it, its caller, toolsets and scopes')
    .action(async (options: CommonOptions) => {
      const { explainToken } = await import('../commands/inspect/token-explain.ts')
      end(await explainToken(await invoked(options)))
    })
  withCommon(token.command('new'))
    .description('make a token and its line for the configuration')
    .option('--id <name>', 'its name', 'host')
    .option('--toolset <name>', 'a toolset it may choose (repeatable)', collect)
    .option('--expires <date>', 'the last day on which it is valid, such as 2027-06-30')
    .action(async (options: TokenOptions) => {
      const { newToken } = await import('../commands/running/token.ts')
      end(await newToken(io, json, options, Date.now()))
    })
  command('tools', 'the tools that hosts see, with their costs')
    .argument('[query...]', 'words in the name, the server or the description')
    .option('--toolset <name>', 'tools of this toolset')
    .option('--as <host>', 'with the names of this host, and the limits that they exceed: cursor, …')
    .action(async (query: readonly string[], options: CommonOptions & ToolsOptions) => {
      const { tools } = await import('../commands/inspect/tools.ts')
      end(await tools(await invoked(options), query.join(' '), options))
    })
  command('call', 'call one tool through the gateway')
    .argument('<tool>', 'its exposed name')
    .argument('[key=value...]', 'its arguments, read by its schema, or one JSON object')
    .option('--args <json>', 'its arguments as one JSON object')
    .option('--toolset <name>', 'as a host of this toolset')
    .option('--as <host>', 'the name of the host, for rules on request.host: claude-code, …')
    .action(async (tool: string, pairs: readonly string[], options: CommonOptions & CallOptions) => {
      const { call } = await import('../commands/running/call.ts')
      end(await call(await invoked(options), tool, pairs, options))
    })
  command('ps', 'state of the running process and its servers')
    .option('-a, --all', 'also the other replicas that share its store')
    .action(async (options: CommonOptions & PsOptions) => {
      const { ps } = await import('../commands/running/servers.ts')
      end(await ps(await invoked(options), options))
    })
  command('tail', 'calls as they end: tool:gh__* err >1s server:x since:10m')
    .argument('[filter...]', 'terms that must all match')
    .option('--since', 'also the kept calls')
    .option('--server <key>', 'calls of this server: short for server:KEY')
    .option('--errors', 'calls that ended with an error: short for err')
    .option('--record <file>', 'write both sides of each call to this file, for mock')
    .action(async (filter: readonly string[], options: CommonOptions & TailOptions) => {
      const { tail } = await import('../commands/running/tail.ts')
      end(await tail(await invoked(options), filter, options))
    })
  command('replay', 'send a captured call again, unchanged or edited')
    .argument('<id>', 'its number, as tail shows it')
    .option('--edit', 'change its parameters first, in $VISUAL or $EDITOR')
    .option('-y, --yes', 'do not ask')
    .action(async (id: string, options: CommonOptions & ReplayOptions) => {
      const { replayCall } = await import('../commands/running/replay.ts')
      end(await replayCall(await invoked(options), id, options))
    })
  command('report', 'one captured call as text for the author of the server, without secrets')
    .argument('<id>', 'its number, as tail shows it')
    .action(async (id: string, options: CommonOptions) => {
      const { report } = await import('../commands/running/report.ts')
      end(await report(await invoked(options), id))
    })
  command('top', 'servers with their calls of the last minutes, live')
    .option('--once', 'print once and end')
    .action(async (options: CommonOptions & TopOptions) => {
      const { top } = await import('../commands/running/top.ts')
      end(await top(await invoked(options), options))
    })
  command('mock', 'serve a recording on stdin and stdout, in place of real servers')
    .argument('<file>', 'a file written by tail --record')
    .option('--strict', 'only the recorded calls, in their order')
    .action(async (file: string, options: CommonOptions & MockOptions) => {
      const { mock } = await import('../commands/inspect/mock.ts')
      end(await mock(io, file, options))
    })
  command('open', 'print a link to the dashboard of the running process, and open it in a browser')
    .option('--no-browser', 'only print it')
    .action(async (options: CommonOptions & { readonly browser?: boolean }) => {
      const { open } = await import('../commands/running/open.ts')
      end(await open(await invoked(options), options.browser !== false && !json && io.stdout.isTTY === true))
    })
  command('login', 'sign in to a server: prints the link, and waits')
    .argument('<server>', 'its key')
    .option('--open', 'open the link in a browser')
    .action(async (server: string, options: CommonOptions & { readonly open?: boolean }) => {
      const { login } = await import('../commands/running/login.ts')
      end(await login(await invoked(options), server, options.open === true))
    })
  command('why', 'the rules that show, hide or rename something, with their places')
    .argument('<name>', 'exposed or original name of a tool or prompt, or a URI')
    .option('--toolset <name>', 'only this toolset')
    .option('--as <host>', 'also the names and limits of this host: cursor, …')
    .action(async (name: string, options: CommonOptions & WhyOptions) => {
      const { why } = await import('../commands/inspect/why.ts')
      end(await why(await invoked(options), name, options))
    })
  command('can', 'whether a caller may make a call, and the rule that decides; the call is not made')
    .argument('<principal>', 'as in the audit log: token:ID of a static token, local without a credential')
    .argument('<name>', 'exposed name of a tool or prompt, or a URI')
    .argument('[key=value...]', 'its arguments')
    .option('--args <json>', 'its arguments as one JSON object')
    .option('--toolset <name>', 'at this toolset')
    .option('--claims <json>', 'claims of its OAuth token')
    .option('--scopes <words>', 'scopes of its OAuth token')
    .option('--host <name>', 'name of its host')
    .option('--address <address>', 'its address')
    .action(async (principal: string, name: string, pairs: readonly string[], options: CommonOptions & CanOptions) => {
      const { can } = await import('../commands/inspect/can.ts')
      end(await can(await invoked(options), principal, name, pairs, options))
    })
  command('plan', 'the changes that a reload, or another file (-c FILE), would make to the running process')
    .option('--running <file>', 'compare with the process that runs this file')
    .action(async (options: CommonOptions & { readonly running?: string }) => {
      const { plan } = await import('../commands/inspect/plan.ts')
      end(await plan(await invoked(options), options.running))
    })
  command('reload', 'make the running process read its files again')
    .option('--dry-run', 'show the changes, as plan does')
    .option('-y, --yes', 'do not ask')
    .action(async (options: CommonOptions & ReloadOptions & { readonly dryRun?: boolean }) => {
      const { plan, reload } = await import('../commands/inspect/plan.ts')
      end(await (options.dryRun === true ? plan(await invoked(options)) : reload(await invoked(options), options)))
    })
  command('approve', 'approve changed definitions (lock.on_change); with a lock file, write them to it')
    .argument('<server>', 'its key')
    .argument('[name]', 'original name of a tool; default: all that changed')
    .action(async (server: string, name: string | undefined, options: CommonOptions) => {
      const { approve } = await import('../commands/running/servers.ts')
      end(await approve(await invoked(options), await invoked(options, { withoutLock: true }), server, name))
    })
  command('restart', 'restart one server of the running process')
    .argument('<server>', 'its key')
    .action(async (server: string, options: CommonOptions) => {
      const { restart } = await import('../commands/running/servers.ts')
      end(await restart(await invoked(options), server))
    })
}

/** Every command with its arguments and options, in the order of the help. What a command does is loaded when it is called. */
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
import type { PsOptions } from '../commands/running/control.ts'
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

const ALLOW_FAULTS = 'inject what the configuration says under faults'

/** What the commands of one run share. */
export interface Commands extends Invocations {
  readonly io: Io
  /** Answers are for machines. */
  readonly json: boolean
  /** `up` was written, so a word without a command was meant for it. */
  readonly isNamed: boolean
  /** Is given the exit code. */
  readonly end: (exitCode: number) => void
}

export const addCommands = (program: Command, { io, json, isNamed, end, invoked, writing, connecting }: Commands): void => {
  const command = (words: string, description: string, isDefault = false): Command =>
    withCommon(program.command(words, { isDefault }).description(description))
  command('up', 'serve the configuration (what happens without a command)', true)
    .option('--listen <address>', 'HOST:PORT instead of what the configuration says')
    .option('--stdio', 'and one host on stdin and stdout; ends when it has left')
    .option(
      '--from <host>',
      'what this host or file of a host has, read-only, in place of the configuration (repeatable)',
      collect,
    )
    .option('--watch', 'reload when a file changes, whatever reload.watch says; files of hosts, too, where they are served')
    .option('--no-watch', 'reload on request alone')
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
    .option('--inline', 'start the servers here, even where a process of this configuration runs')
    .option('--server <key>', 'this server alone, under its own names')
    .option('--toolset <name>', 'this toolset')
    .option('--url <url>', 'the server at this URL alone, without a configuration')
    .option('-H, --header <header>', 'with --url: a header, as "Name: value" (repeatable)', collect)
    .option('--allow-faults', ALLOW_FAULTS)
    .action(async (options: CommonOptions & StdioOptions) => {
      const { bridge, stdio } = await import('../commands/serve/stdio.ts')
      const invocation = await invoked(options, { looksAround: false })
      end(await (options.url === undefined ? stdio(invocation, options) : bridge(invocation, options)))
    })
  command('check', 'is the configuration right? (also: validate)')
    .alias('validate')
    .option('--live', 'start its servers and see whether they work')
    .option('--strict', 'warnings count as errors')
    .option('--host <list>', 'would these hosts take the tools as they are? claude-desktop,cursor,… or all')
    .option('--allow-faults', ALLOW_FAULTS)
    .option('--locked', 'do its servers offer what the lock file says? Starts them unless a process runs')
    .action(async (options: CommonOptions & CheckOptions) => {
      const { check } = await import('../commands/inspect/check.ts')
      end(await check(await invoked(options), options))
    })
  command('lock', 'write the lock file: definitions as they are now, approved (lock.file)')
    .argument('[servers...]', 'keys; all if left out')
    .option('--apps', 'also what servers list to hosts that run MCP Apps')
    .action(async (servers: readonly string[], options: CommonOptions & { readonly apps?: boolean }) => {
      const { lock } = await import('../commands/inspect/lock.ts')
      const { read } = await invoked(options)
      end(await lock(await invoked(options, { withoutLock: true }), { servers, apps: options.apps === true }, read))
    })
  command('diff', 'how definitions differ from what was approved')
    .argument('[name]', 'exposed or original name, or key of a server; everything if left out')
    .action(async (name: string | undefined, options: CommonOptions) => {
      const { diff } = await import('../commands/inspect/lock.ts')
      end(await diff(await invoked(options), name))
    })
  for (const word of ['init', 'import'] as const)
    command(
      word,
      word === 'init'
        ? 'keep the servers that hosts have as trunkline.yaml here'
        : 'add the servers of hosts to the configuration',
    )
      .argument('[hosts...]', 'claude-code, cursor, …; all that are found if left out')
      .option('--user', 'for all projects: write into the configuration folder of the user')
      .option('--dry-run', 'show what would be written')
      .option('-y, --yes', 'do not ask')
      .action(async (hosts: readonly string[], options: CommonOptions & ImportOptions & { readonly user?: boolean }) => {
        const { importServers } = await import('../commands/setup/import.ts')
        end(await importServers(await writing(options, word === 'init'), hosts, options))
      })
  command('add', 'add one server: NAME URL, NAME -- COMMAND, a name in the registry, ./server.json, ./x.mcpb')
    .argument('<source...>', 'name, then URL or command; or one of the others alone')
    .option('-e, --env <name=value>', 'a variable of its environment (repeatable)', collect)
    .option('-H, --header <header>', 'a header, as "Name: value" (repeatable)', collect)
    .option('-t, --transport <kind>', 'stdio, http or sse')
    .option('--prefix <prefix>', 'what its exposed names begin with')
    .option('--as <name>', 'its key, in place of one made from its name')
    .option('--use <kind>', 'of a server.json: remote, npm, pypi, nuget or oci')
    .option('--user', 'into the configuration of the user')
    .option('--force', 'in place of a server of this name, or beside the same one')
    .option('-y, --yes', 'do not ask')
    .action(async (words: readonly string[], options: CommonOptions & AddOptions & { readonly user?: boolean }) => {
      const { add } = await import('../commands/setup/add.ts')
      end(await add(await writing(options), words, options))
    })
  command('remove', 'remove one server from the configuration')
    .argument('<server>', 'its key')
    .option('--user', 'from the configuration of the user')
    .action(async (server: string, options: CommonOptions & { readonly user?: boolean }) => {
      const { remove } = await import('../commands/setup/remove.ts')
      end(await remove(await writing(options), server))
    })
  command('connect', 'enter Trunkline in the file of a host: shows the difference, keeps a backup')
    .argument('[hosts...]', 'claude-code, claude-desktop, vscode, cursor, …')
    .option('--all', 'every host that is installed')
    .option('--scope <scope>', 'user, local or project: which of its files')
    .option('--toolset <name>', 'this toolset')
    .option('--http', 'by the URL of the running process; else the host starts trunkline itself')
    .option('--stdio', 'the host starts trunkline itself (what happens without --http)')
    .option('--token-env <name>', 'with --http: the variable that holds a token, for a host that does not sign in by itself')
    .option('--move', 'take its own servers behind Trunkline: import them, and remove them there')
    .option('--no-move', 'leave its own servers alone, and do not ask')
    .option('--print', 'print what would be entered, and write nothing')
    .option('--link', 'print an install link (VS Code, Cursor)')
    .option('--wait <duration>', 'wait so long for its first request and say what it sees (on a terminal: 2m)')
    .option('--no-wait', 'do not wait')
    .option('-y, --yes', 'do not ask')
    .action(async (hosts: readonly string[], options: CommonOptions & ConnectOptions) => {
      const { connect } = await import('../commands/setup/connect.ts')
      end(await connect(await connecting(options), hosts, options))
    })
  command('disconnect', 'take Trunkline out of the file of a host, which then is as it was')
    .argument('[hosts...]', 'as for connect')
    .option('--all', 'every host')
    .option('--scope <scope>', 'user, local or project: which of its files; all if left out')
    .option('-y, --yes', 'do not ask')
    .action(async (hosts: readonly string[], options: CommonOptions & ConnectOptions) => {
      const { disconnect } = await import('../commands/setup/connect.ts')
      end(await disconnect(await connecting(options), hosts, options))
    })
  command('fmt', 'print the configuration in its usual form, with its comments')
    .option('--check', 'only see whether it has that form')
    .option('--write', 'write it into the file')
    .action(async (options: CommonOptions & FmtOptions) => {
      const { fmt } = await import('../commands/inspect/fmt.ts')
      end(await fmt(await invoked(options), options))
    })
  command('adapt', "print the servers of a host's file as a configuration")
    .argument('<file>', '.mcp.json, mcp.json, config.toml, …')
    .option('--write', 'write them into the configuration, and their secrets to .env, as import does')
    .option('--dry-run', 'with --write: show what would be written')
    .option('-y, --yes', 'do not ask')
    .action(async (file: string, options: CommonOptions & AdaptOptions) => {
      const { adapt } = await import('../commands/setup/adapt.ts')
      end(await adapt(await writing(options), file, options))
    })
  command('doctor', 'what of the environment keeps servers from working, with remedies')
    .option('--fix', 'repair what is safe to repair')
    .action(async (options: CommonOptions & DoctorOptions) => {
      const { doctor } = await import('../commands/doctor/doctor.ts')
      end(await doctor(await invoked(options, { takesNone: true }), options))
    })
  command('logs', 'what servers printed on stderr and logged')
    .argument('[servers...]', 'keys; all if left out')
    .option('-f, --follow', 'and what they print from now on')
    .option('-n, --lines <count>', 'at most so many of those kept', '200')
    .option('--since <time>', 'those of the last 10m, or since a time such as 2026-11-22T20:15')
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
  const token = program.command('token').description('tokens of hosts: make one, or explain one')
  withCommon(token.command('explain'))
    .description('read a token from stdin and print each check of it, its caller, toolsets and scopes')
    .action(async (options: CommonOptions) => {
      const { explainToken } = await import('../commands/inspect/token-explain.ts')
      end(await explainToken(await invoked(options)))
    })
  token
    .command('new')
    .description('make one, and the line of the configuration that lets it in')
    .option('--id <name>', 'what names it', 'host')
    .option('--toolset <name>', 'a toolset it may choose (repeatable)', collect)
    .option('--expires <date>', 'the last day it is good, such as 2027-06-30')
    .option('--json', 'answer for machines')
    .action(async (options: TokenOptions) => {
      const { newToken } = await import('../commands/running/token.ts')
      end(await newToken(io, json, options, Date.now()))
    })
  command('tools', 'what hosts see, and what it costs')
    .argument('[query...]', 'words that the name, the server or the description holds')
    .option('--toolset <name>', 'of this toolset')
    .option('--as <host>', 'under the names of this host, with what it would not take: cursor, …')
    .action(async (query: readonly string[], options: CommonOptions & ToolsOptions) => {
      const { tools } = await import('../commands/inspect/tools.ts')
      end(await tools(await invoked(options), query.join(' '), options))
    })
  command('call', 'call one tool through the gateway')
    .argument('<tool>', 'its exposed name')
    .argument('[key=value...]', 'its arguments, read by its schema')
    .option('--args <json>', 'its arguments as one JSON object')
    .option('--toolset <name>', 'as a host of this toolset')
    .option('--as <host>', 'as this host calls itself, for rules on request.host: claude-code, …')
    .action(async (tool: string, pairs: readonly string[], options: CommonOptions & CallOptions) => {
      const { call } = await import('../commands/running/call.ts')
      end(await call(await invoked(options), tool, pairs, options))
    })
  command('ps', 'state of the running process and its servers')
    .option('-a, --all', 'also the other replicas that share its store')
    .action(async (options: CommonOptions & PsOptions) => {
      const { ps } = await import('../commands/running/control.ts')
      end(await ps(await invoked(options), options))
    })
  command('tail', 'calls as they end: tool:gh__* err >1s server:x since:10m')
    .argument('[filter...]', 'terms that must all hold')
    .option('--since', 'also what is kept from before')
    .option('--server <key>', 'of this server: short for server:KEY')
    .option('--errors', 'what ended with an error: short for err')
    .option('--record <file>', 'write both sides of each call there, for mock')
    .action(async (filter: readonly string[], options: CommonOptions & TailOptions) => {
      const { tail } = await import('../commands/running/tail.ts')
      end(await tail(await invoked(options), filter, options))
    })
  command('replay', 'a captured call again, as it was or edited')
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
    .option('--once', 'show it once')
    .action(async (options: CommonOptions & TopOptions) => {
      const { top } = await import('../commands/running/top.ts')
      end(await top(await invoked(options), options))
    })
  command('mock', 'serve a recording on stdin and stdout, in place of real servers')
    .argument('<file>', 'what tail --record wrote')
    .option('--strict', 'only the recorded calls, in their order')
    .action(async (file: string, options: CommonOptions & MockOptions) => {
      const { mock } = await import('../commands/inspect/mock.ts')
      end(await mock(io, file, options))
    })
  command('open', 'a link to the dashboard of the running process, opened in a browser')
    .option('--no-browser', 'print it only')
    .action(async (options: CommonOptions & { readonly browser?: boolean }) => {
      const { open } = await import('../commands/running/open.ts')
      end(await open(await invoked(options), options.browser !== false && !json && io.stdout.isTTY === true))
    })
  command('login', 'sign in at a server: prints the link, and waits')
    .argument('<server>', 'its key')
    .option('--open', 'open the link in a browser')
    .action(async (server: string, options: CommonOptions & { readonly open?: boolean }) => {
      const { login } = await import('../commands/running/login.ts')
      end(await login(await invoked(options), server, options.open === true))
    })
  command('why', 'the rules that show, hide or rename something, with their places')
    .argument('<name>', 'of a tool or prompt, or a URI; as hosts or as the server call it')
    .option('--toolset <name>', 'what this toolset makes of it; all of them if left out')
    .option('--as <host>', 'and what this host would make of it: cursor, …')
    .action(async (name: string, options: CommonOptions & WhyOptions) => {
      const { why } = await import('../commands/inspect/why.ts')
      end(await why(await invoked(options), name, options))
    })
  command('can', 'whether a caller may make a call, and the rule that says so; the call is not made')
    .argument('<principal>', 'as in the audit log: token:ID of a static token, local without a credential')
    .argument('<name>', 'of a tool or prompt, or a URI, as hosts call it')
    .argument('[key=value...]', 'its arguments')
    .option('--args <json>', 'all of them as one JSON object')
    .option('--toolset <name>', 'at this toolset')
    .option('--claims <json>', 'claims of its OAuth token')
    .option('--scopes <words>', 'scopes of its OAuth token')
    .option('--host <name>', 'name of its host')
    .option('--address <address>', 'address it calls from')
    .action(async (principal: string, name: string, pairs: readonly string[], options: CommonOptions & CanOptions) => {
      const { can } = await import('../commands/inspect/can.ts')
      end(await can(await invoked(options), principal, name, pairs, options))
    })
  command('plan', 'what a reload would change of the running process, or what another file would (-c FILE)')
    .option('--running <file>', 'compare with the process that runs this file')
    .action(async (options: CommonOptions & { readonly running?: string }) => {
      const { plan } = await import('../commands/inspect/plan.ts')
      end(await plan(await invoked(options), options.running))
    })
  command('reload', 'make the running process read its files again')
    .option('--dry-run', 'show what it would change, as plan does')
    .option('-y, --yes', 'do not ask')
    .action(async (options: CommonOptions & ReloadOptions & { readonly dryRun?: boolean }) => {
      const { plan, reload } = await import('../commands/inspect/plan.ts')
      end(await (options.dryRun === true ? plan(await invoked(options)) : reload(await invoked(options), options)))
    })
  command('approve', 'take changed definitions as the true ones (lock.on_change); with a lock file, write them there')
    .argument('<server>', 'its key')
    .argument('[name]', 'of a tool, as the server calls it; all that changed if left out')
    .action(async (server: string, name: string | undefined, options: CommonOptions) => {
      const { approve } = await import('../commands/running/control.ts')
      end(await approve(await invoked(options), await invoked(options, { withoutLock: true }), server, name))
    })
  command('restart', 'restart one server of the running process')
    .argument('<server>', 'its key')
    .action(async (server: string, options: CommonOptions) => {
      const { restart } = await import('../commands/running/control.ts')
      end(await restart(await invoked(options), server))
    })
}

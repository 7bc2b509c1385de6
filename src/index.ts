/** The gateway inside another program, without a command line, signals, an admin socket or an admin listener (`admin.bind`). */
import { callTool } from './admin/calls/call-tool.ts'
import { serverStatuses, urlsOf } from './admin/state/status.ts'
import type { ServerStatus } from './admin/state/status.ts'
import { listTools } from './admin/catalog/tools.ts'
import type { ToolRow } from './admin/catalog/tools.ts'
import { startGateway } from './app.ts'
import { diffConfigurations } from './config/change/difference.ts'
import { loadConfiguration } from './config/load.ts'
import type { Configuration } from './config/options.ts'
import { ConfigError } from './config/syntax/problems.ts'
import type { Problem } from './config/syntax/problems.ts'
import { readRuntimeEnvironment } from './config/runtime-environment.ts'
import type { Log } from './values/log.ts'
import { complete, Refusal } from './rpc/call.ts'
import type { Call, Caller, Handler, Layer, Outcome } from './rpc/call.ts'
import { memberOf } from './values/json-object.ts'
import { Payload } from './wire/message/payload.ts'
import { createLog } from './log.ts'
import { Redactor } from './redactor.ts'

export { complete, ConfigError, Payload, Refusal }
export type { Call, Caller, Configuration, Handler, Layer, Log, Outcome, Problem, ServerStatus, ToolRow }

/** A configuration as in `trunkline.yaml`: the same keys, units and variables (docs/configuration.md). */
export type ConfigurationInput = Readonly<Record<string, unknown>>

export interface CreateGatewayOptions {
  /**
   * An object as in the file, or the paths of files as with `-c`. Relative paths in an object start at the working directory. An object
   * keeps nothing on disk unless it names `state.dir`.
   */
  readonly configuration: ConfigurationInput | { readonly files: readonly string[] }
  /** False: bind no address and no unix socket, and use the gateway through `tools` and `call` only. Default: true. */
  readonly listen?: boolean
  /**
   * Your own policies, outermost first: each is a `Layer`, a function from the next handler to a handler. Every request of a host that
   * becomes a call (tools, prompts, resources, completions, tasks, lists) passes them once, after authentication and rate limits, under
   * exposed names (with prefix at `/mcp`, without at `/servers/<key>/…`, where `call.caller.scope.server` is the key); retries of a call that
   * waits for input pass them again. Requests that are answered without a call (`initialize`, `ping`,
   * `server/discover`, `logging/setLevel`, `subscriptions/listen`) and unknown methods do not. A layer may refuse (throw a `Refusal`),
   * answer itself (`complete`), or pass the call on and change its result. Any other error that it throws is logged; the host gets -32603.
   */
  readonly layers?: readonly Layer[]
  /** Receives log lines. Default: warnings and errors as JSON lines on stderr. */
  readonly log?: Log
}

/** The result of a tool. `isError`: the tool reports a failure. */
export interface ToolResult {
  readonly isError: boolean
  /** The result as JSON as a host gets it: what the server sent, with exposed URIs and, where there are several servers, the key of its server in `_meta`. */
  readonly json: string
}

/** A gateway that runs until it is closed. */
export interface EmbeddedGateway extends AsyncDisposable {
  /** The MCP endpoints, with the ports that the system chose. */
  readonly urls: readonly string[]
  /** The status of each server. */
  servers(): readonly ServerStatus[]
  /** The tools known now, under their exposed names. */
  tools(): readonly ToolRow[]
  /**
   * Calls a tool by its exposed name, as principal `local`; waits for servers that are starting. `args` are an object of plain data.
   * Rejects with an `Error` whose `kind` is the reason: `refused` (a name that is unknown and has the prefix of no server, a `Refusal` of a layer,
   * a question to a person), `error` (a JSON-RPC error of the server, also about a name that it does not list), or a kind of failure such as `unreachable` (docs/operations.md). Other errors, such as those of a layer
   * with a defect, have no `kind`.
   */
  call(tool: string, args?: object, signal?: AbortSignal): Promise<ToolResult>
  /**
   * Applies another configuration; servers with the same launch and address keep running. Rejects with `ConfigError`, or with the system's
   * error if an address cannot be bound, and then changes nothing. Rejects after `close`.
   */
  reload(configuration: CreateGatewayOptions['configuration']): Promise<void>
  /** Stops within `reload.drain`: open calls first, then the servers and their processes. */
  close(): Promise<void>
}

/**
 * Starts a gateway; resolves when its addresses are bound, without waiting for servers. Rejects with `ConfigError` (all problems at once),
 * or with the system's error if an address cannot be bound.
 */
export const createGateway = async (options: CreateGatewayOptions): Promise<EmbeddedGateway> => {
  const context = readRuntimeEnvironment()
  const load = async (given: CreateGatewayOptions['configuration']): Promise<Configuration> => {
    const configuration = await loadConfiguration(isFiles(given) ? given : { files: [], value: given }, context)
    if (options.listen !== false) return configuration
    return { ...configuration, host: { ...configuration.host, addresses: [], unix: undefined, inherited: [] } }
  }
  const configuration = await load(options.configuration)
  const redactor = new Redactor(configuration.secrets)
  const log = options.log ?? createLog({ ...configuration.log, level: 'warn' }, process.stderr, redactor.hideJson)
  if (configuration.workers > 1) log.warn({}, 'listen.workers works only on the command line: this gateway is one process')
  const running = await startGateway(configuration, {
    log,
    redactor,
    path: context.env['PATH'],
    ...(options.layers !== undefined && { policies: options.layers }),
  })
  const apply = async (given: CreateGatewayOptions['configuration']): Promise<void> => {
    const next = await load(given)
    await running.apply(next, new Set(diffConfigurations(running.configuration, next).changed))
  }
  // Reloads run one after the other, in order.
  let last = Promise.resolve()
  return {
    get urls() {
      return urlsOf(running)
    },
    servers: () => redactor.hideIn(serverStatuses(running)),
    tools: () => redactor.hideIn(listTools(running.gateway)),
    call: async (tool, args = {}, signal = new AbortController().signal) => {
      const end = await callTool(running.gateway, { tool, args: JSON.stringify(args), ref: running.context.nextRef() }, signal)
      if (end.kind === 'result') return { isError: end.isError, json: end.result.toString() }
      throw Object.assign(new Error(redactor.hide(end.message)), { kind: end.kind })
    },
    reload: (given) => {
      const done = last.then(() => apply(given))
      last = done.catch(() => undefined)
      return done
    },
    close: () => running.stop(),
    [Symbol.asyncDispose]: () => running.stop(),
  }
}

/** Callers in plain JavaScript may give anything: what is no list of files is validated as a configuration. */
const isFiles = (given: CreateGatewayOptions['configuration']): given is { readonly files: readonly string[] } =>
  Array.isArray(memberOf(given, 'files'))

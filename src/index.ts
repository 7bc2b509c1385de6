/** The gateway inside another program, without a command line, signals, an admin socket or an admin listener (`admin.bind`). */
import './supported-node.ts'
import { callTool } from './admin/calls/call-tool.ts'
import { serverStatuses, urlsOf } from './admin/state/status.ts'
import type { ServerStatus } from './admin/state/server-status.ts'
import { listTools } from './admin/catalog/find-tools.ts'
import type { ToolRow } from './admin/catalog/tools.ts'
import { startGateway } from './app.ts'
import { diffConfigurations } from './config/change/difference.ts'
import { loadConfiguration } from './config/load.ts'
import type { Configuration } from './config/options.ts'
import { valueName } from './config/read/given.ts'
import { ConfigError } from './config/syntax/problems.ts'
import type { Problem } from './config/syntax/problems.ts'
import { readRuntimeEnvironment } from './config/runtime-environment.ts'
import { fileProblems, guardLayers, guardLog, optionProblems } from './embedded.ts'
import type { Log } from './values/log.ts'
import { complete, Refusal } from './rpc/call.ts'
import type { Call, Caller, Handler, Layer, Outcome } from './rpc/call.ts'
import { isJsonObject, isList, memberOf } from './values/json-object.ts'
import type { FailureKind } from './wire/message/failure.ts'
import { Payload } from './wire/message/payload.ts'
import { createLog } from './log.ts'
import { Redactor } from './redactor.ts'

export { complete, ConfigError, Payload, Refusal }
export type { Call, Caller, Handler, Layer, Log, Outcome, Problem, ServerStatus, ToolRow }

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
   * Each layer is called once, by `createGateway`, so that it may keep state. Results reach it whole.
   */
  readonly layers?: readonly Layer[]
  /**
   * Receives log lines of all levels, without secrets; an error that it throws is ignored. Default: lines on stderr in the format of
   * `telemetry.log.format` and from the level of `telemetry.log.level`, which is `warn` if it is not configured.
   */
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
   * Calls a tool by its exposed name, as principal `local`; waits for servers that are starting. `args` are an object of plain data. An
   * aborted `signal` cancels the call and rejects at once, also while a layer does not answer.
   * Rejects with `CallError`, whose `kind` is the reason. Rejects with another error for arguments that are no JSON object, and for
   * a layer with a defect.
   */
  call(tool: string, args?: object, signal?: AbortSignal): Promise<ToolResult>
  /**
   * Applies another configuration; servers with the same launch and address keep running. Rejects with `ConfigError`, or with the system's
   * error if an address cannot be bound, and then changes nothing. Rejects after `close`.
   */
  reload(configuration: CreateGatewayOptions['configuration']): Promise<void>
  /** Stops within `reload.drain`: open calls first, also those of `call`, then the servers and their processes. */
  close(): Promise<void>
}

/** A call of `EmbeddedGateway.call` that has no result. */
export class CallError extends Error {
  override readonly name = 'CallError'
  /**
   * `refused`: an unknown name with the prefix of no server, a `Refusal` of a layer, or a question to a person. `error`: a JSON-RPC error of
   * the server, also about a name that it does not list. Others: a failure such as `unreachable`, `timeout` or `cancelled` (docs/operations.md).
   */
  readonly kind: 'refused' | 'error' | FailureKind

  constructor(kind: CallError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

/**
 * Starts a gateway; resolves when its addresses are bound, without waiting for servers. Rejects with `ConfigError` (all problems at once),
 * or with the system's error if an address cannot be bound.
 */
export const createGateway = async (options: CreateGatewayOptions): Promise<EmbeddedGateway> => {
  const problems = optionProblems(options)
  if (problems.length > 0) throw new ConfigError(problems)
  const context = readRuntimeEnvironment({ logLevel: 'warn' })
  const load = async (given: CreateGatewayOptions['configuration']): Promise<Configuration> => {
    const configuration = await loadConfiguration(sourcesOf(given), context)
    if (options.listen !== false) return configuration
    return { ...configuration, host: { ...configuration.host, addresses: [], unix: undefined, inherited: [] } }
  }
  const configuration = await load(options.configuration)
  const redactor = new Redactor(configuration.secrets)
  const own = createLog(configuration.log, process.stderr, redactor.hideJson)
  const log = options.log === undefined ? own : guardLog(options.log, redactor)
  const warnOf = (next: Configuration, known: readonly string[]): void => {
    for (const warning of next.warnings) if (!known.includes(warning)) log.warn({}, warning)
    if (next.workers > 1) log.warn({}, 'listen.workers works only on the command line: this gateway is one process')
  }
  warnOf(configuration, [])
  /** How open calls of the program are rejected: a layer may never answer. */
  const open = new Set<(error: CallError) => void>()
  const running = await startGateway(configuration, {
    log,
    redactor,
    path: context.env['PATH'],
    policies: guardLayers(options.layers ?? []),
    ownInFlight: () => open.size,
  })
  const apply = async (given: CreateGatewayOptions['configuration']): Promise<void> => {
    const before = running.configuration
    const next = await load(given)
    const { changed, needsRestart } = diffConfigurations(before, next)
    await running.apply(next, new Set(changed))
    own.level = next.log.level
    warnOf(next, before.warnings)
    if (needsRestart.length > 0) log.warn({ options: needsRestart }, 'these changes take effect in a new gateway only')
  }
  const call = async (tool: string, args: object = {}, signal = new AbortController().signal): Promise<ToolResult> => {
    if (typeof tool !== 'string') throw new TypeError(`expected the exposed name of a tool, got ${valueName(tool)}`)
    if (!isJsonObject(args)) throw new TypeError(`expected the arguments of ${tool} as an object, got ${valueName(args)}`)
    if (!(signal instanceof AbortSignal)) throw new TypeError(`expected an AbortSignal, got ${valueName(signal)}`)
    const ref = running.context.nextRef()
    const { promise: abandoned, reject } = Promise.withResolvers<never>()
    const cancel = (): void => reject(new CallError('cancelled', 'the call was cancelled'))
    if (signal.aborted) cancel()
    signal.addEventListener('abort', cancel)
    open.add(reject)
    try {
      const ended = callTool(running.gateway, { tool, args: JSON.stringify(args), ref }, signal)
      const end = await Promise.race([abandoned, ended])
      if (end.kind === 'result') return { isError: end.isError, json: end.result.toString() }
      throw new CallError(end.kind, redactor.hide(end.message))
    } finally {
      open.delete(reject)
      signal.removeEventListener('abort', cancel)
    }
  }
  const close = async (): Promise<void> => {
    await running.stop()
    for (const reject of open) reject(new CallError('shutting_down', 'the gateway was closed before the call had a result'))
  }
  // Reloads run one after the other, in order.
  let last = Promise.resolve()
  return {
    get urls() {
      return urlsOf(running)
    },
    servers: () => redactor.hideIn(serverStatuses(running)),
    tools: () => redactor.hideIn(listTools(running.gateway)),
    call,
    reload: (given) => {
      const done = last.then(() => apply(given))
      last = done.catch(() => undefined)
      return done
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Callers in plain JavaScript may give anything: what is no list of files is validated as a configuration. */
const sourcesOf = (given: CreateGatewayOptions['configuration'] | undefined): Parameters<typeof loadConfiguration>[0] => {
  if (!isFiles(given)) return { files: [], value: given ?? null }
  const problems = fileProblems(given.files)
  if (problems.length > 0) throw new ConfigError(problems)
  return given
}

const isFiles = (given: unknown): given is { readonly files: readonly string[] } => isList(memberOf(given, 'files'))

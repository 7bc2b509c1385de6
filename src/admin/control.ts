/** All requests of operators to a gateway, in this process or behind the admin socket. */
import { once } from 'node:events'
import type { Running } from '../app/running.ts'
import { LOCAL } from '../auth/identity.ts'
import { authMode, takesTokenByHand } from '../auth/inbound/verify/inbound-options.ts'
import type { SignInEnd } from '../auth/outbound/sign-ins.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { ConfigError } from '../config/syntax/problems.ts'
import type { Problem } from '../config/syntax/problems.ts'
import type { LogQuery } from '../downstream/server-logs.ts'
import type { CallDetail } from '../observe/capture/captured.ts'
import type { CallPage } from '../observe/observer.ts'
import type { Viewer } from '../observe/viewer.ts'
import { operatorCommand } from '../operator-command.ts'
import { Searches } from '../gateway/lists/searches.ts'
import type { ConnectGuide } from '../host/listener-context.ts'
import type { Redactor } from '../redactor.ts'
import { SHARED_PRINCIPAL } from '../rpc/call.ts'
import { MODERN } from '../wire/protocol/revisions.ts'
import { VERSION } from '../version.ts'
import type { RuntimeEnvironment } from '../config/runtime-environment.ts'
import { basisOf } from './change/basis.ts'
import type { Basis } from './change/basis.ts'
import { callDetail, followCalls, pageOfCalls } from './calls/calls.ts'
import type { FeedOptions, FeedSink } from './calls/calls.ts'
import { canCall, readQuestion } from './explain/can.ts'
import type { CanEnd } from './explain/can.ts'
import { callTool } from './calls/call-tool.ts'
import type { CallEnd, CallRequest } from './calls/call-tool.ts'
import { editConfiguration } from './change/edit.ts'
import type { EditEnd } from './change/edit.ts'
import { readEdit } from './change/edit-request.ts'
import { listHiddenTools } from './catalog/hidden-tools.ts'
import type { HiddenTool } from './catalog/hidden-tools.ts'
import { lintCatalog } from './catalog/lint.ts'
import type { CatalogHistory } from './catalog/history.ts'
import type { Lint } from './catalog/lint.ts'
import { readChanges, readOffered } from './catalog/offered.ts'
import type { UnapprovedChange, OfferedServer } from './catalog/offered.ts'
import { metricsText } from './state/metrics.ts'
import { replay } from './calls/replay.ts'
import type { ReplayEnd, ReplayRequest } from './calls/replay.ts'
import type { PastReload, PlanEnd, Reloader, ReloadEnd } from './change/reload-ends.ts'
import { readSettings } from './state/settings.ts'
import type { Settings } from './state/settings.ts'
import { statsOf, timedCalls } from './calls/stats.ts'
import type { Stats } from './calls/stats.ts'
import { serverStatuses, urlsOf } from './state/status.ts'
import type { Status } from './state/status.ts'
import { listToolsets } from './catalog/toolsets.ts'
import type { Toolsets } from './catalog/toolsets.ts'
import { findTools, listTools } from './catalog/find-tools.ts'
import type { FoundTool, ToolRow } from './catalog/tools.ts'
import { readLogs } from './state/logs.ts'
import type { LogPage } from './state/logs.ts'
import { explain } from './explain/why.ts'
import type { WhyEnd } from './explain/why.ts'

export interface Control {
  status(): Promise<Status>
  /** Captured calls, newest first; `query`: `filter`, `limit`, `before`. Rejects with `AdminRefusal`. */
  calls(viewer: Viewer, query: URLSearchParams): Promise<CallPage>
  /** All that is kept of one call. Rejects with `AdminRefusal`. */
  callDetail(viewer: Viewer, id: number, signal?: AbortSignal): Promise<CallDetail>
  /** Sends rows as calls begin and end, and captures calls, until `signal` fires. Rejects with `AdminRefusal`. */
  follow(options: FeedOptions, sink: FeedSink, signal: AbortSignal): Promise<void>
  /** Sends a captured request again. Rejects with `AdminRefusal`. */
  replay(viewer: Viewer, request: ReplayRequest, signal: AbortSignal): Promise<ReplayEnd>
  /** The calls of the last minutes by server and tool. */
  stats(windowMs: number): Promise<Stats>
  /** The last lines that a server printed on stderr, oldest first; `undefined`: there is no such server. */
  stderr(server: string, lines: number): Promise<readonly string[] | undefined>
  /** Lines that servers wrote, oldest first; with `isWaiting` it waits for the first line. Rejects with `AdminRefusal`. */
  logs(query: LogQuery & { readonly isWaiting: boolean }, signal: AbortSignal): Promise<LogPage>
  /** All metrics, in the Prometheus format. */
  metrics(isOpenMetrics: boolean): Promise<string>
  /** A link to the dashboard; opens the admin listener. Rejects where no address can be bound. */
  open(): Promise<OpenEnd>
  /** What hosts see at `/mcp`, or at a toolset; `undefined`: there is no such toolset. */
  tools(query: string, toolset: string | undefined): Promise<readonly ToolRow[] | undefined>
  /** Tools that servers offer and the configuration hides. */
  hiddenTools(): Promise<readonly HiddenTool[]>
  /** `signal` cancels the call. Refused for a toolset that does not exist. */
  call(request: CallRequest, signal: AbortSignal): Promise<CallEnd>
  /** The definitions that these servers, or all, offer now, before any policy; `apps`: also those for hosts with MCP Apps. */
  offered(servers: readonly string[], apps: boolean): Promise<readonly OfferedServer[]>
  /** Definitions that differ from the approved ones. */
  changes(): Promise<readonly UnapprovedChange[]>
  /** Reads the files again. Never rejects: a refused configuration is a result. */
  reload(): Promise<ReloadEnd>
  /** Findings for these hosts (keys of `HOST_LIMITS`). */
  lint(hosts: readonly string[]): Promise<Lint>
  /** Toolsets with costs, budgets and endpoints. */
  toolsets(): Promise<Toolsets>
  /** Tools as `discovery: search` finds them, best first; `undefined`: there is no such toolset. */
  search(query: string, toolset: string | undefined): Promise<readonly FoundTool[] | undefined>
  /** How to connect hosts by hand, to `/mcp` or to a toolset; `undefined`: there is no such toolset, or no address. */
  guides(toolset: string | undefined): Promise<readonly ConnectGuide[] | undefined>
  /** Changes of the catalog while the admin listener is open, and past reloads. */
  history(): Promise<History>
  /** Every rule that shows, hides or renames an entry of this name, in every toolset or in one. */
  why(name: string, toolset: string | undefined): Promise<WhyEnd>
  /** Whether a caller may make a call; `question`: JSON, see `readQuestion`. Rejects with `AdminRefusal`. */
  can(question: string): Promise<CanEnd>
  /** The configuration as in its files, each value with its place. */
  settings(): Promise<Settings>
  /** The changes that a reload would make; applies nothing. */
  plan(): Promise<PlanEnd>
  /** Plans an edit of the configuration, or writes it and reloads; `body`: JSON, see `readEdit`. Rejects with `AdminRefusal`. */
  edit(body: string): Promise<EditEnd>
  /** The snapshot for a plan of other files; `undefined`: the process has another version, whose digests cannot be compared. */
  basis(): Promise<Basis | undefined>
  /** False: there is no such server. */
  restart(server: string): Promise<boolean>
  /** The link with which the operator signs in to a server. `undefined`: there is no such server, or it has no sign-in. */
  login(server: string): Promise<Login | undefined>
  /** Waits for the end of that sign-in; `signal` stops waiting. */
  loginEnd(server: string, signal: AbortSignal): Promise<SignInEnd>
  /** Approves changed definitions, of one tool (original name) or all. `undefined`: there is no such server. */
  approve(server: string, tool: string | undefined): Promise<readonly string[] | undefined>
}

/** Changes of the catalog, and reloads. */
export interface History extends CatalogHistory {
  /** Since the process started, oldest first. */
  readonly reloads: readonly PastReload[]
}

/** The address of the admin listener; `undefined`: `ui.enabled` is off, and nothing is bound. */
export type OpenEnd =
  | {
      /** With a one-time key in its fragment, valid for ten minutes. */
      readonly url: string
      readonly origin: string
      /** File with a token for programs, such as a Prometheus. */
      readonly tokenFile: string | undefined
    }
  | undefined

/** URL of the sign-in page; `code`: the code that it asks for, where hosts are authenticated. */
export interface Login {
  readonly url: string
  readonly code?: string
}

export interface LocalControlOptions {
  readonly reloader: Reloader
  readonly context: Pick<RuntimeEnvironment, 'env' | 'overrides'>
  readonly redactor: Redactor
  /** Opens the admin listener; absent: there is none. */
  readonly open?: Control['open']
  /** The changes of the catalog; absent: none are kept. */
  readonly history?: () => CatalogHistory
}

/** The control of a gateway in this process. */
export const localControl = (
  running: Running,
  {
    reloader,
    context,
    redactor,
    open = async () => undefined,
    history = () => ({ since: null, changes: [] }),
  }: LocalControlOptions,
): Control => {
  const searches = new Searches()
  const startedMs = performance.now()
  return {
    open,
    calls: async (viewer, query) => pageOfCalls(running.observer, viewer, query),
    callDetail: async (viewer, id) => callDetail(running.observer, viewer, id),
    follow: async (options, sink, signal) => {
      const stopWatching = running.watchCalls()
      const stopKeeping = options.isWhole ? running.observer.keepWhole() : undefined
      try {
        const stop = followCalls(running.observer, options, sink)
        if (!signal.aborted) await once(signal, 'abort')
        stop()
      } finally {
        stopKeeping?.()
        stopWatching()
      }
    },
    replay: async (viewer, request, signal) => {
      const end = await replay(running, viewer, request, signal)
      return end.kind === 'result' ? end : { ...end, message: redactor.hide(end.message) }
    },
    stats: async (windowMs) => statsOf(running, windowMs, timedCalls(running, windowMs)),
    stderr: async (server, lines) => redactor.hideIn(running.fleet.get(server)?.dialer.stderrTail(lines)),
    logs: async (query, signal) => redactor.hideIn(await readLogs(running, query, signal)),
    metrics: async (isOpenMetrics) => redactor.hide(metricsText(running, isOpenMetrics)),
    status: async () => {
      const { configuration, gateway } = running
      const { oauth } = configuration.host.auth ?? {}
      const replicas = await running.replicas?.list().catch(() => undefined)
      return redactor.hideIn({
        pid: process.pid,
        version: VERSION,
        uptimeMs: Math.round(performance.now() - startedMs),
        files: configuration.files,
        urls: urlsOf(running),
        auth: authMode(configuration.host.auth),
        oauth: oauth && { endpoint: oauth.audience, clients: oauth.hostClients },
        servers: serverStatuses(running),
        limits: running.limits.all,
        rates: gateway.rates.counts,
        audit: running.audit,
        faults: running.faults,
        toolsets: gateway.feed.summaries(operatorCommand(configuration.named, 'tools')),
        toolsDigest: gateway.feed.whole(MODERN).list('tools').digest,
        collisions: messagesOf(gateway.feed.catalog, 'duplicate'),
        warnings: [...configuration.warnings, ...messagesOf(gateway.feed.catalog, 'case')],
        problems: reloader.problems,
        replicas,
      })
    },
    tools: async (query, toolset) => {
      const scope = running.gateway.scopeFor(LOCAL, { toolset })
      return scope && redactor.hideIn(listTools(running.gateway, query, scope))
    },
    hiddenTools: async () => redactor.hideIn(listHiddenTools(running)),
    call: async (request, signal) => {
      const { toolset } = request
      const scope = running.gateway.scopeFor(LOCAL, { toolset })
      if (scope === undefined) return { kind: 'refused', message: `there is no toolset "${toolset}"` }
      const end = await callTool(running.gateway, { ...request, ref: running.context.nextRef() }, signal, scope)
      return end.kind === 'result' ? end : { ...end, message: redactor.hide(end.message) }
    },
    toolsets: async () => redactor.hideIn(listToolsets(running)),
    search: async (query, toolset) => {
      const scope = running.gateway.scopeFor(LOCAL, { toolset })
      return scope && redactor.hideIn(await findTools(running.gateway, searches, query, scope))
    },
    guides: async (toolset) => {
      const { context, gateway, configuration } = running
      const { auth } = configuration.host
      const url = auth?.oauth?.audience ?? urlsOf(running)[0]
      if (url === undefined || gateway.scopeFor(LOCAL, { toolset }) === undefined) return undefined
      const own = toolset === undefined ? url : `${url}/${encodeURIComponent(toolset)}`
      return context.guides(own, takesTokenByHand(auth))
    },
    history: async () => redactor.hideIn({ ...history(), reloads: reloader.past }),
    offered: async (servers, apps) => readOffered(running, servers, apps, redactor),
    changes: async () => redactor.hideIn(readChanges(running)),
    reload: async () => redactor.hideIn(await reloader.reload()),
    login: async (server) => {
      const pending = await pendingSignIn(running, server)
      const needsCode = running.configuration.host.auth !== undefined
      return pending && { url: pending.url, ...(needsCode && { code: pending.signIn.code }) }
    },
    loginEnd: async (server, signal) => {
      const pending = await pendingSignIn(running, server)
      return new Promise((resolve) => {
        if (pending === undefined || signal.aborted) return resolve('expired')
        pending.signIn.onEnd(resolve)
        signal.addEventListener('abort', () => resolve('expired'), { once: true })
      })
    },
    lint: async (hosts) => redactor.hideIn(lintCatalog(running.gateway.feed.catalog, running.configuration.gateway, hosts)),
    why: async (name, toolset) => redactor.hideIn(explain(running, name, toolset)),
    can: async (question) => redactor.hideIn(await canCall(running, readQuestion(question))),
    settings: async () => redactor.hideIn(await readSettings(running.configuration)),
    plan: async () => redactor.hideIn(await reloader.plan()),
    edit: async (body) => redactor.hideIn(await editConfiguration(running.configuration, reloader, readEdit(body))),
    basis: async () => basisOf(running, context, (value) => redactor.hideIn(value)),
    approve: async (server, tool) => running.fleet.get(server)?.offers.approve(tool),
    restart: async (server) => {
      const isKnown = running.fleet.restart(server, running.configuration.host.drainMs)
      // A restart also starts a lazy server.
      running.fleet.get(server)?.retryNow()
      return isKnown
    },
  }
}

/** Messages about equal names: `duplicate` entries are left out, `case` differences are warnings. */
const messagesOf = ({ problems }: Catalog, wanted: Catalog['problems'][number]['kind']): string[] =>
  problems.flatMap(({ kind, message }) => (kind === wanted ? [message] : []))

const pendingSignIn = async ({ fleet, context }: Running, server: string) => {
  const downstream = fleet.for(server, SHARED_PRINCIPAL)
  const interactive = downstream?.credential?.interactive
  return downstream && interactive && context.signIns.ask(interactive, downstream.options.displayName)
}

/** Why a configuration was refused, as problems: its own, or an address that cannot be bound. */
export const problemsOf = (error: unknown): readonly Problem[] => {
  if (error instanceof ConfigError) return error.problems
  // Cast: Node adds the address to the errors of a listener.
  const { code, address, message } = error as NodeJS.ErrnoException & { address?: string }
  if (address === undefined || code === undefined)
    return [{ place: '', path: '', message: `could not be applied: ${message}`, remedy: '' }]
  return [{ place: address, path: 'listen', message: `cannot be bound (${code})`, remedy: 'choose another address' }]
}

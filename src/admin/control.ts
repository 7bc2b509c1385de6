/** Everything the command line can ask of a gateway, whether it runs in this process or behind the admin socket. */
import type { Running } from '../app/running.ts'
import { LOCAL } from '../auth/identity.ts'
import { authMode, takesTokenByHand } from '../auth/inbound/inbound-options.ts'
import type { SignInEnd } from '../auth/oauth/sign-ins.ts'
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
import { VERSION } from '../version.ts'
import type { Context, EditedFile } from '../config/runtime-environment.ts'
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
import type { Deviating, OfferedServer } from './catalog/offered.ts'
import { metricsText } from './state/metrics.ts'
import { replay } from './calls/replay.ts'
import type { ReplayEnd, ReplayRequest } from './calls/replay.ts'
import type { PastReload, PlanEnd, ReloadEnd } from './change/reload-ends.ts'
import { readSettings } from './state/settings.ts'
import type { Settings } from './state/settings.ts'
import { statsOf, timedCalls } from './calls/stats.ts'
import type { Stats } from './calls/stats.ts'
import { serverStatuses, urlsOf } from './state/status.ts'
import type { Status } from './state/status.ts'
import { listToolsets } from './catalog/toolsets.ts'
import type { Toolsets } from './catalog/toolsets.ts'
import { findTools, listTools } from './catalog/tools.ts'
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
  callDetail(viewer: Viewer, id: number): Promise<CallDetail>
  /** Sends rows as calls begin and end, and sees to it that calls are captured, until `signal` fires. Rejects with `AdminRefusal`. */
  follow(options: FeedOptions, sink: FeedSink, signal: AbortSignal): Promise<void>
  /** Sends a captured request again. Rejects with `AdminRefusal`. */
  replay(viewer: Viewer, request: ReplayRequest, signal: AbortSignal): Promise<ReplayEnd>
  /** The calls of the last minutes by server and tool. */
  stats(windowMs: number): Promise<Stats>
  /** The last lines that a server printed on stderr, oldest first; `undefined`: there is no such server. */
  stderr(server: string, lines: number): Promise<readonly string[] | undefined>
  /** What servers wrote, oldest first; waits for a line where there is none yet and `isWaiting`. Rejects with `AdminRefusal`. */
  logs(query: LogQuery & { readonly isWaiting: boolean }, signal: AbortSignal): Promise<LogPage>
  /** Everything that is measured, as a Prometheus reads it. */
  metrics(isOpenMetrics: boolean): Promise<string>
  /** A link to the dashboard, for whose sake the admin listener is opened. Rejects where no address can be bound. */
  open(): Promise<OpenEnd>
  /** What hosts see at `/mcp`, or at a toolset; `undefined`: there is no such toolset. */
  tools(query: string, toolset: string | undefined): Promise<readonly ToolRow[] | undefined>
  /** Tools that servers offer and the configuration keeps from hosts. */
  hiddenTools(): Promise<readonly HiddenTool[]>
  /** `signal` gives the call up. A toolset that does not exist refuses it. */
  call(request: CallRequest, signal: AbortSignal): Promise<CallEnd>
  /** What these servers, or all, say of themselves now, before any policy; `apps`: to hosts that run MCP Apps, too. */
  offered(servers: readonly string[], apps: boolean): Promise<readonly OfferedServer[]>
  /** What is not as it was approved. */
  changes(): Promise<readonly Deviating[]>
  /** Reads the files again. Never rejects: a configuration that is refused is an answer. */
  reload(): Promise<ReloadEnd>
  /** What these hosts (words of `HOST_LIMITS`) would not take as it is. */
  lint(hosts: readonly string[]): Promise<Lint>
  /** What toolsets cost and may cost, and how hosts come to them. */
  toolsets(): Promise<Toolsets>
  /** Tools as `discovery: search` finds them, the best first; `undefined`: there is no such toolset. */
  search(query: string, toolset: string | undefined): Promise<readonly FoundTool[] | undefined>
  /** How hosts are connected by hand, to everything or to a toolset; `undefined`: there is no such toolset, or no address. */
  guides(toolset: string | undefined): Promise<readonly ConnectGuide[] | undefined>
  /** What changed in the catalog while the admin listener is open, and what was reloaded. */
  history(): Promise<History>
  /** Every rule that shows, hides or renames what is called so, in every toolset or in one. */
  why(name: string, toolset: string | undefined): Promise<WhyEnd>
  /** Whether a caller may make a call; `question`: JSON, see `readQuestion`. Rejects with `AdminRefusal`. */
  can(question: string): Promise<CanEnd>
  /** The configuration as its files say it, each value with its place. */
  settings(): Promise<Settings>
  /** What a reload would change; nothing is applied. */
  plan(): Promise<PlanEnd>
  /** Plans an edit of the configuration, or writes it and reloads; `body`: JSON, see `readEdit`. Rejects with `AdminRefusal`. */
  edit(body: string): Promise<EditEnd>
  /** What a plan of other files is made from; `undefined`: the process is not of this version, whose digests alone compare. */
  basis(): Promise<Basis | undefined>
  /** False: there is no such server. */
  restart(server: string): Promise<boolean>
  /** The link to sign in at a server, as the operator. `undefined`: there is no such server, or it has no sign-in. */
  login(server: string): Promise<Login | undefined>
  /** How that ends; `signal` stops waiting. */
  loginEnd(server: string, signal: AbortSignal): Promise<SignInEnd>
  /** Takes changed definitions as they are now, of one tool (original name) or all. `undefined`: there is no such server. */
  approve(server: string, tool: string | undefined): Promise<readonly string[] | undefined>
}

/** What changed so far. */
export interface History extends CatalogHistory {
  /** Since the process started, oldest first. */
  readonly reloads: readonly PastReload[]
}

/** How the admin listener is reached; `undefined`: `ui.enabled` is off, and nothing is bound. */
export type OpenEnd =
  | {
      /** With a one-time key in its fragment, good for ten minutes. */
      readonly url: string
      readonly origin: string
      /** Holds a token for programs, such as a Prometheus. */
      readonly tokenFile: string | undefined
    }
  | undefined

/** Where to sign in; `code`: what the page asks for, where hosts are authenticated. */
export interface Login {
  readonly url: string
  readonly code?: string
}

/** Reloads, and what became of them. */
export interface Reloader {
  /** Of the last one. */
  readonly problems: readonly Problem[]
  /** Oldest first; so many as are worth a look. */
  readonly past: readonly PastReload[]
  reload(): Promise<ReloadEnd>
  /** `edited`: as if files held other texts. */
  plan(edited?: readonly EditedFile[]): Promise<PlanEnd>
}

export const localControl = (
  running: Running,
  reloader: Reloader,
  context: Pick<Context, 'env' | 'overrides'>,
  redactor: Redactor,
  open: Control['open'] = async () => undefined,
  history: () => CatalogHistory = () => ({ since: null, changes: [] }),
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
        if (!signal.aborted)
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
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
    logs: async (query, signal) => {
      const page = await readLogs(running, query, signal)
      return { ...page, lines: page.lines.map((line) => ({ ...line, text: redactor.hide(line.text) })) }
    },
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
      const end = await callTool(running.gateway, request, signal, scope)
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
      const asked = await askedAt(running, server)
      const isAsked = running.configuration.host.auth !== undefined
      return asked && { url: asked.url, ...(isAsked && { code: asked.signIn.code }) }
    },
    loginEnd: async (server, signal) => {
      const asked = await askedAt(running, server)
      return new Promise((resolve) => {
        if (asked === undefined) return resolve('expired')
        asked.signIn.onEnd(resolve)
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
      // A lazy server, too, is wanted now.
      running.fleet.get(server)?.retryNow()
      return isKnown
    },
  }
}

/** What is said of names that meet: `duplicate` takes something from hosts, `case` is only odd. */
const messagesOf = ({ problems }: Catalog, wanted: Catalog['problems'][number]['kind']): string[] =>
  problems.flatMap(({ kind, message }) => (kind === wanted ? [message] : []))

const askedAt = async ({ fleet, context }: Running, server: string) => {
  const downstream = fleet.for(server, SHARED_PRINCIPAL)
  const interactive = downstream?.credential?.interactive
  return downstream && interactive && context.signIns.ask(interactive, downstream.options.displayName)
}

/** Why a configuration was refused, as problems: by its own words, or because an address it names cannot be bound. */
export const problemsOf = (error: unknown): readonly Problem[] => {
  if (error instanceof ConfigError) return error.problems
  // Cast: Node adds the address to the errors of a listener.
  const { code, address, message } = error as NodeJS.ErrnoException & { address?: string }
  if (address === undefined) return [{ place: '', path: '', message: `could not be applied: ${message}`, remedy: '' }]
  return [{ place: address, path: 'listen', message: `cannot be bound (${code})`, remedy: 'choose another address' }]
}

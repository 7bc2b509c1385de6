/** A gateway in this process, on a port of its own, in front of fake servers. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { DEFAULT_POLICY } from '../../src/policy/options.ts'
import type { PolicyOptions } from '../../src/policy/options.ts'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { Readable, Writable } from 'node:stream'
import { startGateway as start } from '../../src/app.ts'
import type { Running } from '../../src/app/running.ts'
import { memberConfiguration, ownerConfiguration } from '../../src/commands/serve/shared-servers.ts'
import { LOCAL } from '../../src/auth/identity.ts'
import type { Identity } from '../../src/auth/identity.ts'
import type { Configuration } from '../../src/config/options.ts'
import { DEFAULT_BACKOFF } from '../../src/downstream/pacing/backoff.ts'
import type { BackoffOptions } from '../../src/downstream/pacing/backoff.ts'
import type { Log } from '../../src/values/log.ts'
import { DEFAULT_LIMITS, DEFAULT_SERVER, DEFAULT_TIMEOUTS } from '../../src/downstream/options.ts'
import type { ServerLimits, ServerOptions, ServerTimeouts } from '../../src/downstream/options.ts'
import { DEFAULT_SPARE } from '../../src/downstream/spare.ts'
import type { SpareOptions } from '../../src/downstream/spare.ts'
import { DEFAULT_GATEWAY } from '../../src/gateway/options.ts'
import type { GatewayOptions } from '../../src/gateway/options.ts'
import { DEFAULT_HOST, DEFAULT_HOST_LIMITS } from '../../src/host/options.ts'
import type { HostLimits, HostOptions } from '../../src/host/options.ts'
import type { EndpointPath } from '../../src/rpc/call.ts'
import type { ReplicaTimes } from '../../src/replicas/lease.ts'
import type { Store } from '../../src/store/store.ts'
import { DEFAULT_OBSERVE } from '../../src/observe/options.ts'
import { NO_PROXIES } from '../../src/transport/http1/client/proxy-rules.ts'
import type { ProxyRules } from '../../src/transport/http1/client/proxy-rules.ts'
import { StdioListener } from '../../src/host/stdio/stdio-listener.ts'
import { HostPipe } from '../../src/transport/pipe/stdio-host.ts'
import { readEnds } from '../../src/wire/message/message-ends.ts'
import { FakeDownstream } from './fake-downstream.ts'
import type { FakeSpec } from './fake-downstream.ts'
import { Journal } from './fakes/journal.ts'
import type { HostStreams } from './fakes/pipe-host.ts'
import { STATE_FOLDERS } from './memory-folder.ts'

const OWNER_TOKEN = 'the token of the owner'

type ServerOverrides = Partial<Omit<ServerOptions, 'timeouts' | 'limits'>> & {
  readonly timeouts?: Partial<ServerTimeouts>
  readonly limits?: Partial<ServerLimits>
}

export interface GatewaySetup {
  readonly servers: Readonly<Record<string, FakeSpec>>
  /** What the configuration says of single servers beside how to reach them. */
  readonly options?: Readonly<Record<string, ServerOverrides>>
  readonly gateway?: Partial<GatewayOptions>
  readonly host?: Partial<Omit<HostOptions, 'limits'>>
  readonly hostLimits?: Partial<HostLimits> | undefined
  readonly audit?: Configuration['audit']
  readonly tracing?: Configuration['tracing']
  readonly faults?: Configuration['faults']
  readonly secrets?: readonly string[]
  /** As the environment of a process would name them, for authorization servers. */
  readonly proxies?: ProxyRules
  readonly backoff?: Partial<BackoffOptions>
  readonly spare?: Partial<SpareOptions> | undefined
  /** Serve one host on a pipe and no other, as `trunkline stdio` does; with a path, as its `--server` does. */
  readonly pipe?: boolean | EndpointPath
  /** Do not wait until all servers are ready. */
  readonly early?: boolean
  /** Kept from one start to the next; a fresh one by default. */
  readonly stateDir?: string | undefined
  readonly policy?: Partial<PolicyOptions>
  /** `state.key`, 64 hex digits each. */
  readonly stateKey?: string | readonly string[]
  /** `replicas.url`. */
  readonly replicaUrl?: string
  readonly replicaTimes?: ReplicaTimes
  /** Shared by several gateways. */
  readonly store?: Store
  /** Servers that all callers share run at a second gateway, as at the supervisor of several workers. */
  readonly isWorker?: boolean
  /** Fakes that outlive the gateway. */
  readonly fakes?: ReadonlyMap<string, FakeDownstream>
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly facts: Readonly<Record<string, unknown>>
  readonly text: string
}

export interface TestGateway extends AsyncDisposable {
  readonly url: URL
  readonly running: Running
  readonly log: Journal<LogLine>
  fake(key: string): FakeDownstream
  /** A further host on a pipe, beside those over HTTP; or the one host of a gateway started with `pipe`. */
  openPipe(identity?: Identity, path?: EndpointPath): HostStreams
  /** Resolves once no server is starting any more, and lets the fakes forget how they were started. */
  ready(): Promise<void>
}

/** The same gateway, where pipes are opened as this principal. */
export const asPrincipal = (gateway: TestGateway, principal: string): TestGateway => ({
  ...gateway,
  openPipe: () => gateway.openPipe({ ...LOCAL, principal }),
})

/** Starts fakes and gateway; resolves once all servers are ready, unless `early` or `pipe` is set. */
export const startGateway = async (setup: GatewaySetup): Promise<TestGateway> => {
  const fakes = new Map<string, FakeDownstream>(setup.fakes)
  for (const [key, spec] of Object.entries(setup.servers)) if (!fakes.has(key)) fakes.set(key, await FakeDownstream.start(spec))
  const stateDir = setup.stateDir ?? mkdtempSync(join(STATE_FOLDERS, 'trunkline-test-'))
  const whole = configure(setup, fakes, stateDir)
  const log = new Journal<LogLine>()
  const owner =
    setup.isWorker === true
      ? await start(ownerConfiguration(whole, OWNER_TOKEN), { log: keepIn(log), path: undefined })
      : undefined
  const configuration =
    owner === undefined ? whole : memberConfiguration(whole, { origin: await owner.front.addresses.origin(), token: OWNER_TOKEN })
  const { pipe = false } = setup
  const streams = pipe === false ? undefined : makeStreams()
  const running = await start(configuration, {
    log: keepIn(log),
    // No `setpriv`: servers end with their pipes, and looking for it starts another process for each gateway.
    path: undefined,
    backoff: { ...DEFAULT_BACKOFF, firstMs: 20, maxMs: 100, minRetryMs: 20, maxCrashes: 1_000, ...setup.backoff },
    spare: { ...DEFAULT_SPARE, ...setup.spare },
    ...(setup.store !== undefined && { store: setup.store }),
    ...(setup.replicaTimes !== undefined && { replicaTimes: setup.replicaTimes }),
    ...(streams !== undefined && { pipe: { ...streams, ...(typeof pipe === 'object' && { path: pipe }) } }),
  })
  const ready = async (): Promise<void> => {
    await Promise.all(running.fleet.downstreams$.value.map((downstream) => settled(downstream.health$)))
    for (const downstream of fakes.values()) downstream.forget()
  }
  if (setup.early !== true && pipe === false) await ready()
  return {
    url: new URL(`http://127.0.0.1:${running.front.addresses.tcp[0]?.port ?? 0}/mcp`),
    running,
    log,
    fake: (key) => {
      const found = fakes.get(key)
      if (found === undefined) throw new Error(`no fake "${key}"`)
      return found
    },
    openPipe: (identity = LOCAL, path = {}) => streams ?? attachPipe(running, identity, path),
    ready,
    [Symbol.asyncDispose]: async () => {
      await running.stop()
      await owner?.stop()
      for (const [key, downstream] of fakes) if (setup.fakes?.has(key) !== true) await downstream[Symbol.asyncDispose]()
      if (setup.stateDir === undefined) rmSync(stateDir, { recursive: true, force: true })
    },
  }
}

/** Changes limits of the listener by a reload, so that what a test has begun comes to them now, however long it took. */
export const limitHosts = ({ running }: TestGateway, limits: Partial<HostLimits>): Promise<void> => {
  const { host, ...others } = running.configuration
  return running.apply({ ...others, host: { ...host, limits: { ...host.limits, ...limits } } }, new Set())
}

/** One entry of `servers`, complete. */
export const serverOptions = (key: string, downstream: FakeDownstream, overrides: ServerOverrides = {}): ServerOptions => {
  const { address } = downstream
  return {
    ...DEFAULT_SERVER,
    spare: 0,
    key,
    prefix: key,
    displayName: key.toUpperCase(),
    place: `test:${key}`,
    launch: 'args' in address ? { ...address, env: {}, cwd: process.cwd() } : undefined,
    url: 'url' in address ? address.url : undefined,
    transport: downstream.kind === 'legacy sse' ? 'sse' : 'auto',
    ...overrides,
    timeouts: { ...DEFAULT_TIMEOUTS, ...overrides.timeouts },
    // Tests end processes all the time.
    limits: { ...DEFAULT_LIMITS, maxRestarts: 10_000, ...overrides.limits },
  }
}

export const configure = (setup: GatewaySetup, fakes: ReadonlyMap<string, FakeDownstream>, stateDir: string): Configuration => ({
  id: '0123456789abcdef',
  workers: 1,
  named: [],
  files: [],
  emptyFiles: [],
  globs: [],
  guards: [],
  servers: [...fakes].map(([key, downstream]) => serverOptions(key, downstream, setup.options?.[key])),
  proxies: setup.proxies ?? NO_PROXIES,
  gateway: { ...DEFAULT_GATEWAY, ...setup.gateway },
  host: {
    ...DEFAULT_HOST,
    addresses: [{ host: '127.0.0.1', port: 0 }],
    drainMs: 6_000,
    ...setup.host,
    // Tests share their event loop with all that they start.
    limits: { ...DEFAULT_HOST_LIMITS, maxLoopLagMs: Infinity, ...setup.hostLimits },
  },
  observe: DEFAULT_OBSERVE,
  audit: setup.audit,
  tracing: setup.tracing,
  faults: setup.faults ?? [],
  policy: setup.policy && { ...DEFAULT_POLICY, ...setup.policy },
  allowsFaults: setup.faults !== undefined,
  lock: undefined,
  log: { level: 'debug', format: 'json' },
  stateDir,
  stateKeys: setup.stateKey === undefined ? [] : [setup.stateKey].flat(),
  replicaUrl: setup.replicaUrl,
  store: undefined,
  runtimeDir: stateDir,
  watch: false,
  confirm: false,
  warnings: [],
  secrets: setup.secrets ?? [],
  credentials: setup.secrets ?? [],
})

const settled = async (health$: Running['fleet']['downstreams$']['value'][number]['health$']): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const subscription = health$.subscribe(({ state }) => {
    if (state !== 'starting') resolve()
  })
  await promise
  subscription.unsubscribe()
}

const makeStreams = (): HostStreams => ({ input: new PassThrough(), output: new PassThrough() })

/** A further host on a pipe that is a socket, as those of processes are: its end of it. */
export const attachSocket = async ({ running }: TestGateway): Promise<Socket> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [near] = (await once(server, 'connection')) as [Socket]
  server.close()
  attach(running, { input: near, output: near }, LOCAL, {})
  return far
}

const attachPipe = (running: Running, identity: Identity, path: EndpointPath): HostStreams => {
  const streams = makeStreams()
  attach(running, streams, identity, path)
  return streams
}

const attach = (
  { context }: Running,
  { input, output }: { readonly input: Readable; readonly output: Writable },
  identity: Identity,
  { server, toolset }: EndpointPath,
): void => {
  const scope = context.core.scopeFor(identity, { server, toolset })
  if (scope === undefined) throw new Error('no such endpoint')
  const pipe = new HostPipe(input, output, { maxLineBytes: context.options.limits.maxBodyBytes, bodies: context.bodies })
  const listener = new StdioListener(pipe, { principal: identity.principal, scope, introduced: () => undefined }, context)
  pipe.open({
    line: (line) => listener.receive(line),
    overflow: (head, tail) => listener.overflow(readEnds(head, tail)),
    ended: () => listener.close(),
  })
}

const keepIn = (journal: Journal<LogLine>): Log => {
  const at =
    (level: LogLine['level']) =>
    (facts: object, text: string): void =>
      journal.push({ level, facts: facts as LogLine['facts'], text })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

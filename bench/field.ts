/** The running processes of a group: a fake server of each kind, and each subject before each requested kind of server. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildGateway } from './build.ts'
import type { Cell } from './cells.ts'
import { openHost, type Host, type Reach } from './load.ts'
import type { HostKind, ServerKind } from './payload.ts'
import { start, startNode, type Command, type Started } from './process.ts'
import type { Between, Place, Subject } from './subjects.ts'

/** One row of the result: a subject between one kind of host and one kind of server. */
export interface Contestant {
  readonly subject: string
  readonly between: Between
  readonly prefix: string
  readonly cells: readonly Cell[]
  /** Processes of the same, which take turns by round: what is compiled how differs from one to the next. */
  readonly instances: readonly Instance[]
}

export interface Instance {
  readonly pid: number
  readonly host: Host
}

/** Starts what a run needs in folders of its own; all of it ends when disposed. */
export class Stage implements AsyncDisposable {
  readonly stack = new AsyncDisposableStack()
  readonly main: string
  /** The command of each subject, without ports and folders. */
  readonly commands: Map<string, string>
  /** What did not start, or refused the handshake, and why. */
  readonly failed: Map<string, string>
  readonly #root: string

  /** `beside`: one whose folder and notes it shares. */
  constructor(root: string, main: string, beside?: Stage) {
    this.#root = root
    this.main = main
    this.commands = beside?.commands ?? new Map()
    this.failed = beside?.failed ?? new Map()
  }

  /** What is started on it ends with `work`. */
  async section<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
    // Also on the outer stack, for a run that is interrupted; disposed twice, it ends once.
    await using inner = this.stack.use(new Stage(this.#root, this.main, this))
    return await work(inner)
  }

  /** A fake server; one on a pipe is only a place. `toolCount`: how long its list is. */
  async server(kind: ServerKind, toolCount = 0): Promise<Place & { readonly pid: number }> {
    const command = [process.execPath, join(import.meta.dirname, 'stdio-server.ts')] as const
    if (kind === 'stdio') return { kind, url: '', command, pid: 0 }
    const { pid, url } = this.stack.use(await startNode(['bench/server.ts', kind, `${toolCount}`]))
    return { kind, url: kind === 'http-sse' ? new URL('/sse', url).href : url.href, command, pid }
  }

  /** A new folder below that of the run. */
  folder(name: string): Promise<string> {
    return mkdtemp(join(this.#root, `${name}-`))
  }

  async command({ name, command }: Subject, servers: readonly Place[], isPiped: boolean): Promise<Command> {
    const folder = await this.folder(name)
    const made = await command({ servers, isPiped, folder, main: this.main })
    if (!this.commands.has(name)) this.commands.set(name, this.#printable(made, folder))
    return made
  }

  /** The process is ended with the stage unless the caller ends it before. */
  async start(
    subject: Subject,
    servers: readonly Place[],
    isPiped = false,
    nodeOptions: readonly string[] = [],
  ): Promise<Started> {
    const command = await this.command(subject, servers, isPiped)
    return this.stack.use(await start({ ...command, args: [...nodeOptions, ...command.args] }))
  }

  /** One that fails is named, and does not keep the others from being tried. */
  async attempt<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      this.lose(name, error)
      return undefined
    }
  }

  /** Notes what takes no further part. */
  lose(name: string, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error)
    this.failed.set(name, error instanceof Error && error.cause instanceof Error ? `${why}: ${error.cause.message}` : why)
  }

  #printable({ file = 'node', args }: Command, folder: string): string {
    const line = [file, ...args].join(' ').replaceAll(folder, 'DIR').replaceAll(this.#root, '.')
    return line
      .replaceAll(process.execPath, 'node')
      .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
      .replaceAll(/--port \d+/g, '--port PORT')
      .replaceAll(/\S*\/node_modules\//g, 'node_modules/')
      .replaceAll(join(import.meta.dirname, '/'), 'bench/')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stack.disposeAsync()
  }
}

export const openStage = async (): Promise<Stage> => {
  const root = await mkdtemp(join(tmpdir(), 'trunkline-bench-'))
  try {
    const stage = new Stage(root, await buildGateway(root))
    stage.stack.defer(() => rm(root, { recursive: true, force: true }))
    return stage
  } catch (error) {
    await rm(root, { recursive: true, force: true })
    throw error
  }
}

const LIST_MS = 30_000
const AGAIN_MS = 50

/** A host of `subject`, once its list holds the tools of the bench: some refuse at first, some list nothing. */
export const openHostOf = async (subject: Subject, reach: Reach, kind: HostKind): Promise<Host> => {
  const path = kind === 'http-sse' ? (subject.ssePath ?? '/sse') : '/mcp'
  const at = reach instanceof URL ? new URL(path, reach) : reach
  const until = performance.now() + LIST_MS
  const attempt = async (): Promise<Host> => {
    const host = await openHost(at, kind, subject.bearer)
    const { tools } = await host.request('tools/list')
    if (JSON.stringify(tools).includes(`"${subject.prefix}t100"`)) return host
    await host[Symbol.asyncDispose]()
    throw new Error(`no tool ${subject.prefix}t100`)
  }
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() > until || !(reach instanceof URL)) throw error
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }
}

/** What of a field is up. */
export interface FieldOptions {
  readonly isWanted: (subject: string, between: Between) => boolean
  readonly cells: (subject: string, between: Between) => readonly Cell[]
  /** How many processes of the same there are. */
  readonly copies: (subject: string, between: Between) => number
}

/** Starts `subjects` in as many pairs of kinds as each has among the wanted; the order of the result is that of `subjects`. */
export const openField = async (
  stage: Stage,
  subjects: readonly Subject[],
  { isWanted, cells, copies }: FieldOptions,
): Promise<readonly Contestant[]> => {
  const pairs = subjects.flatMap(({ name, between }) => between.filter((pair) => isWanted(name, pair)))
  const kinds = [...new Set(pairs.map(([, kind]) => kind))]
  const servers = new Map(await Promise.all(kinds.map(async (kind) => [kind, await stage.server(kind)] as const)))

  const startOne = async (subject: Subject, kind: ServerKind): Promise<readonly Contestant[]> => {
    const server = servers.get(kind)!
    const hosts = subject.between.filter((pair) => pair[1] === kind && isWanted(subject.name, pair)).map(([host]) => host)
    const copiesOf = (host: HostKind): number => (subject.name === 'direct' ? 1 : copies(subject.name, [host, kind]))
    /** Processes of HTTP, which every kind of host shares. */
    const shared: Pick<Started, 'pid' | 'reach'>[] = []
    const most = Math.max(0, ...hosts.filter((host) => host !== 'stdio').map(copiesOf))
    if (subject.name === 'direct' && most > 0) {
      await stage.command(subject, [server], false)
      shared.push({ pid: server.pid, reach: new URL(server.url) })
    } else for (let copy = 0; copy < most; copy++) shared.push(await stage.start(subject, [server]))
    const contestants: Contestant[] = []
    for (const host of hosts) {
      const instances: Instance[] = []
      for (let copy = 0; copy < copiesOf(host); copy++) {
        const { pid, reach } = host === 'stdio' ? await stage.start(subject, [server], true) : shared[copy]!
        instances.push({ pid, host: stage.stack.use(await openHostOf(subject, reach, host)) })
      }
      const between = [host, kind] as const
      contestants.push({ subject: subject.name, between, prefix: subject.prefix, cells: cells(subject.name, between), instances })
    }
    return contestants
  }

  const contestants: Contestant[] = []
  for (const subject of subjects) {
    const own = kinds.filter((kind) => subject.between.some((pair) => pair[1] === kind && isWanted(subject.name, pair)))
    const started = await Promise.all(
      own.map((kind) => stage.attempt(`${subject.name} before ${kind}`, () => startOne(subject, kind))),
    )
    contestants.push(...started.flatMap((one) => one ?? []))
  }
  return contestants
}

/** Everything of a run, up at once: one fake server per era, and each subject before each era of server that it can speak to. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHost, type Host } from './load.ts'
import type { Era } from './payload.ts'
import { startNode, type Running } from './process.ts'
import type { Subject } from './subjects.ts'

/** One row of the result: a subject between one era of host and one era of server. */
export interface Contestant {
  readonly subject: string
  readonly between: readonly [host: Era, server: Era]
  readonly prefix: string
  readonly pid: number
  readonly host: Host
}

export interface Field extends AsyncDisposable {
  readonly contestants: readonly Contestant[]
  /** The command of each subject, without ports and folders. */
  readonly commands: ReadonlyMap<string, string>
  /** Subjects that did not start, or refused the handshake, and why. */
  readonly failed: ReadonlyMap<string, string>
}

const printable = (args: readonly string[], folder: string): string =>
  `node ${args
    .join(' ')
    .replaceAll(folder, 'DIR')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')}`

/** Starts `subjects`; one that fails is left out and named, a fake server that fails rejects. */
export const startField = async (subjects: readonly Subject[]): Promise<Field> => {
  await using stack = new AsyncDisposableStack()
  const root = await mkdtemp(join(tmpdir(), 'trunkline-bench-'))
  stack.defer(() => rm(root, { recursive: true, force: true }))
  const server = async (era: Era): Promise<Running> => stack.use(await startNode(['bench/server.ts', era]))
  const servers: Record<Era, Running> = { legacy: await server('legacy'), modern: await server('modern') }
  const contestants: Contestant[] = []
  const commands = new Map<string, string>()
  const failed = new Map<string, string>()

  const start = async ({ name, command, prefix, between }: Subject, era: Era) => {
    const folder = await mkdtemp(join(root, `${name}-`))
    const args = await command({ downstream: servers[era].url.href, era, folder })
    commands.set(name, commands.get(name) ?? printable(args, folder))
    const { pid, url } = name === 'direct' ? servers[era] : stack.use(await startNode(args))
    for (const pair of between.filter(([, to]) => to === era)) {
      const host = stack.use(await openHost(url, pair[0]))
      await host.request('tools/list')
      contestants.push({ subject: name, between: pair, prefix, pid, host })
    }
  }

  for (const subject of subjects) {
    try {
      for (const era of new Set(subject.between.map(([, to]) => to))) await start(subject, era)
    } catch (error) {
      failed.set(subject.name, error instanceof Error ? error.message : String(error))
    }
  }
  const kept = stack.move()
  return { contestants, commands, failed, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

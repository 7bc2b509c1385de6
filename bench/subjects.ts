/** The compared subjects: how each is started before one server, and the kinds of hosts and servers it is measured between. */
import { writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { once } from 'node:events'
import { BY_TOKEN, byJwt, JWT } from './credentials.ts'
import type { HostKind, ServerKind } from './payload.ts'
import type { Command } from './process.ts'

/** Host, then server. */
export type Between = readonly [host: HostKind, server: ServerKind]

/** Where a fake server is: its URL, or the command that starts it on a pipe. */
export interface Place {
  readonly kind: ServerKind
  readonly url: string
  readonly command: readonly [file: string, ...args: string[]]
}

export interface StartContext {
  /** One unless the subject is measured before many. */
  readonly servers: readonly Place[]
  /** Its host has its pipe. */
  readonly isPiped: boolean
  /** A folder for this process alone. */
  readonly folder: string
  /** The gateway as users run it. */
  readonly main: string
  /** The largest message that must pass, a size as the gateway writes it; its own default unless said. */
  readonly largest?: string
}

export interface Subject {
  readonly name: string
  /** One sentence for the table of commands. */
  readonly what: string
  readonly between: readonly Between[]
  /** What stands before the names of tools. */
  readonly prefix: string
  /** Where hosts of HTTP+SSE go; `/sse` unless said. */
  readonly ssePath?: string
  /** The token of its hosts; the static one unless said. */
  readonly bearer?: string
  /** Writes what it needs into the folder. */
  readonly command: (context: StartContext) => Command | Promise<Command>
}

/** A port that was free just now. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** Writes `config` into `folder`; the options that name it. */
const withConfig = async (folder: string, config: object): Promise<readonly string[]> => {
  const file = join(folder, 'trunkline.json')
  await writeFile(file, JSON.stringify({ version: 1, ...config, reload: { watch: false } }))
  return ['-c', file, '--state', join(folder, 'state')]
}

/** Arguments that start a gateway with `config`, which is written into `folder`; that of this checkout unless `main` is said. */
export const gatewayCommand = async (folder: string, config: object, main = 'src/main.ts'): Promise<readonly string[]> => [
  main,
  'up',
  ...(await withConfig(folder, config)),
  '--listen',
  `127.0.0.1:${await freePort()}`,
]

const configured = ({ kind, url, command: [file, ...args] }: Place): object => {
  if (kind === 'stdio') return { command: file, args, era: 'legacy' }
  if (kind === 'http-sse') return { url, transport: 'sse', era: 'legacy' }
  return { url, transport: 'http', era: kind === 'modern' ? 'modern' : 'legacy' }
}

/**
 * Keys `a`, `s1`, `s2`, …: the tools of the first server are `a__…` however many there are. 32 answers of 1 MB at once on the one stream
 * of a host of HTTP+SSE are more than may be queued by default, thousands of sessions more than one caller has, and 10,000 tools more than are
 * read from one server.
 */
const trunkline = async (
  { servers, isPiped, folder, main, largest }: StartContext,
  auth: object,
  { listen, ...more }: { readonly listen?: object; readonly [section: string]: unknown } = {},
): Promise<Command> => {
  const entries = servers.map((place, index) => [index === 0 ? 'a' : `s${index}`, configured(place)])
  const config = {
    listen: { limits: { max_queued: '64MiB', sessions: 20_000, sessions_per_principal: 20_000 }, ...listen },
    auth,
    ...more,
    defaults: { limits: { tools: 20_000, ...(largest === undefined ? {} : { max_message: largest }) } },
    servers: Object.fromEntries(entries),
  }
  if (isPiped) return { args: [main, 'stdio', '--inline', ...(await withConfig(folder, config))], isPiped }
  return { args: await gatewayCommand(folder, config, main) }
}

/** The gateway with more in its configuration than the subjects have, for a section of its own. */
export const configuredTrunkline = (
  name: string,
  more: { readonly listen?: object; readonly [section: string]: unknown },
): Subject => ({
  name,
  what: 'the same as trunkline, configured as its section says',
  between: SAME.slice(0, 2),
  prefix: 'a__',
  command: (context) => trunkline(context, BY_TOKEN, more),
})

const HOSTS: readonly HostKind[] = ['legacy', 'modern', 'http-sse', 'stdio']
const SERVERS: readonly ServerKind[] = ['legacy', 'modern', 'sse-reply', 'http-sse', 'stdio']
const EVERY = SERVERS.flatMap((server) => HOSTS.map((host) => [host, server] as const))

/** Between hosts and servers of the same transport: what passes bytes can do no other. */
const SAME: readonly Between[] = [
  ['legacy', 'legacy'],
  ['modern', 'modern'],
  ['legacy', 'sse-reply'],
  ['http-sse', 'http-sse'],
]

export const SUBJECTS: readonly Subject[] = [
  {
    name: 'direct',
    what: 'no proxy; the CPU is that of the fake server itself',
    between: [...SAME, ['stdio', 'stdio']],
    prefix: '',
    command: ({ servers: [place] }) =>
      place!.kind === 'stdio' ? { args: place!.command.slice(1), isPiped: true } : { args: ['bench/server.ts', place!.kind] },
  },
  {
    name: 'raw',
    what: 'node:http to undici `Pool.dispatch`, passing bytes',
    between: SAME,
    prefix: '',
    command: ({ servers: [place] }) => ({ args: ['bench/raw.ts', place!.url] }),
  },
  {
    name: 'pipe',
    what: 'a process that passes the bytes of its pipe to that of a child, and back',
    between: [['stdio', 'stdio']],
    prefix: '',
    command: ({ servers: [place] }) => ({ args: ['bench/pipe.ts', ...place!.command], isPiped: true }),
  },
  {
    name: 'lines',
    what: 'a process between two pipes that reads lines, parses each as JSON and relays it unchanged',
    between: [['stdio', 'stdio']],
    prefix: '',
    command: ({ servers: [place] }) => ({ args: ['bench/line-relay.ts', 'parsed', ...place!.command], isPiped: true }),
  },
  {
    name: 'lines-unparsed',
    what: 'the same without `JSON.parse`: the least that one message at a time costs in Node',
    between: [['stdio', 'stdio']],
    prefix: '',
    command: ({ servers: [place] }) => ({ args: ['bench/line-relay.ts', 'unparsed', ...place!.command], isPiped: true }),
  },
  {
    name: 'raw-json',
    what: 'raw, with `JSON.parse` and `JSON.stringify` of every body',
    between: SAME.slice(0, 2),
    prefix: '',
    command: ({ servers: [place] }) => ({ args: ['bench/raw.ts', place!.url, 'json'] }),
  },
  {
    name: 'sdk-proxy',
    what: 'the official SDK 1.x wired as a proxy: sessions, and prefixes where it has many servers',
    between: [
      ['legacy', 'legacy'],
      ['stdio', 'stdio'],
    ],
    prefix: '',
    command: ({ servers, isPiped }) => ({
      args: ['bench/sdk-proxy.ts', ...(isPiped ? ['stdio', ...servers[0]!.command] : servers.map(({ url }) => url))],
      isPiped,
    }),
  },
  {
    name: 'trunkline',
    what: 'this gateway: static tokens, sessions, routing, prefix, limits, and both eras',
    between: EVERY,
    prefix: 'a__',
    command: (context) => trunkline(context, BY_TOKEN),
  },
  {
    name: 'trunkline-jwt',
    what: 'the same, its hosts with a JWT of an authorization server, which is verified once a minute',
    between: SAME.slice(0, 2),
    prefix: 'a__',
    bearer: JWT,
    command: (context) => trunkline(context, byJwt(context.servers[0]!.url)),
  },
  {
    name: 'trunkline-2-workers',
    what: 'the same as trunkline, with `listen.workers: 2`; CPU and memory are those of both workers and of their supervisor',
    between: SAME.slice(0, 2),
    prefix: 'a__',
    command: (context) => trunkline(context, BY_TOKEN, { listen: { workers: 2 } }),
  },
  ...(['errors', 'all'] as const).map((bodies): Subject => ({
    name: `trunkline-${bodies}`,
    what: `the same as trunkline, with the admin listener open: every call is counted and captured, bodies: ${bodies}`,
    between: SAME.slice(0, 2),
    prefix: 'a__',
    command: async (context) => {
      const admin = { bind: `127.0.0.1:${await freePort()}` }
      return trunkline(context, BY_TOKEN, { admin, ui: { capture: { bodies } } })
    },
  })),
]

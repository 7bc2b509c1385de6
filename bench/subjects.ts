/** What is compared: how each subject is started before one downstream, and which eras of hosts and servers it is measured between. */
import { writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { once } from 'node:events'
import type { Era } from './payload.ts'

export interface StartContext {
  /** URL of the downstream, and its era. */
  readonly downstream: string
  readonly era: Era
  /** A folder for this process alone. */
  readonly folder: string
}

export interface Subject {
  readonly name: string
  /** One sentence for the table of commands. */
  readonly what: string
  /** Host era, then server era. */
  readonly between: readonly (readonly [host: Era, server: Era])[]
  /** What stands before the names of tools. */
  readonly prefix: string
  /** Arguments of node; writes what it needs into the folder. */
  readonly command: (context: StartContext) => readonly string[] | Promise<readonly string[]>
}

/** A port that was free just now. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** Arguments that start the gateway of this checkout with `config`, which is written into `folder`. */
export const gatewayCommand = async (folder: string, config: object): Promise<readonly string[]> => {
  const file = join(folder, 'trunkline.json')
  await writeFile(file, JSON.stringify({ version: 1, ...config, reload: { watch: false } }))
  const listen = `127.0.0.1:${await freePort()}`
  return ['src/main.ts', 'up', '-c', file, '--listen', listen, '--state', join(folder, 'state')]
}

const SAME_ERA = [
  ['legacy', 'legacy'],
  ['modern', 'modern'],
] as const

export const SUBJECTS: readonly Subject[] = [
  {
    name: 'direct',
    what: 'no proxy; the CPU is that of the fake server itself',
    between: SAME_ERA,
    prefix: '',
    command: ({ era }) => ['bench/server.ts', era],
  },
  {
    name: 'raw',
    what: 'node:http to undici `Pool.dispatch`, passing bytes',
    between: SAME_ERA,
    prefix: '',
    command: ({ downstream }) => ['bench/raw.ts', downstream],
  },
  {
    name: 'raw-json',
    what: 'raw, with `JSON.parse` and `JSON.stringify` of every body',
    between: SAME_ERA,
    prefix: '',
    command: ({ downstream }) => ['bench/raw.ts', downstream, 'json'],
  },
  {
    name: 'sdk-proxy',
    what: 'the official SDK 1.x wired as a proxy: sessions, no prefix',
    between: [['legacy', 'legacy']],
    prefix: '',
    command: ({ downstream }) => ['bench/sdk-proxy.ts', downstream],
  },
  {
    name: 'trunkline',
    what: 'this gateway: sessions, routing, prefix, limits, and both eras',
    between: [...SAME_ERA, ['modern', 'legacy'], ['legacy', 'modern']],
    prefix: 'a__',
    command: ({ downstream, era, folder }) => gatewayCommand(folder, { servers: { a: { url: downstream, era } } }),
  },
]

/** Where a listener is bound: a TCP address, a unix socket, or a socket that was inherited. Binding is the same to all that follows. */
import { lstat, chmod, rename, unlink } from 'node:fs/promises'
import { connect } from 'node:net'
import type { AddressInfo, Server } from 'node:net'

export interface TcpAddress {
  readonly host: string
  readonly port: number
  /** Of this process alone, where processes share what they bind (`listen.workers`). */
  readonly exclusive?: true
}

export interface UnixAddress {
  /** Absolute; on Windows a named pipe, `\\.\pipe\…`. */
  readonly path: string
  /** Permissions of the socket's file. */
  readonly mode: number
}

/** A socket that listens already, opened by the service manager. */
export interface InheritedSocket {
  readonly fd: number
}

export type ListenAddress = TcpAddress | UnixAddress | InheritedSocket

/** A bound server: where, and what is left to do once it is closed. */
export interface Bound {
  /** `undefined`: it is a unix socket. */
  readonly tcp: TcpAddress | undefined
  /** `undefined`: it is a TCP socket. */
  readonly path: string | undefined
  readonly release: () => Promise<void>
}

const nothing = async (): Promise<void> => undefined

/** Rejects with the system's error (`EADDRINUSE` …). */
export const bind = async (server: Server, address: ListenAddress): Promise<Bound> => {
  if ('path' in address && !isNamedPipe(address.path)) return bindUnix(server, address)
  const what = 'fd' in address ? { fd: address.fd } : 'path' in address ? { path: address.path } : address
  await listening(server, what)
  const bound = server.address()
  if (typeof bound === 'string' || bound === null) return { tcp: undefined, path: bound ?? '', release: nothing }
  // The name that was configured stays: `localhost`.
  const tcp = { host: 'host' in address ? address.host : bound.address, port: (bound satisfies AddressInfo).port }
  return { tcp, path: undefined, release: nothing }
}

const isNamedPipe = (path: string): boolean => path.startsWith('\\\\')

/**
 * The socket gets its permissions before it has its name, so that no other user connects between the two. A socket that no process
 * listens on was left behind and is replaced; any other file stays.
 */
const bindUnix = async (server: Server, { path, mode }: UnixAddress): Promise<Bound> => {
  const found = await lstat(path).catch(() => undefined)
  if (found !== undefined && (!found.isSocket() || (await isAnswered(path)))) throw inUse(path)
  const first = `${path}.${process.pid}`
  await unlink(first).catch(() => undefined)
  await listening(server, { path: first })
  try {
    await chmod(first, mode)
    await rename(first, path)
  } catch (error) {
    server.close()
    throw error
  }
  const { ino } = await lstat(path)
  const release = async (): Promise<void> => {
    const now = await lstat(path).catch(() => undefined)
    if (now?.ino === ino) await unlink(path).catch(() => undefined)
  }
  return { tcp: undefined, path, release }
}

const inUse = (path: string): Error =>
  Object.assign(new Error(`listen EADDRINUSE: ${path}`), { code: 'EADDRINUSE', address: path })

/** Whether a process listens at the unix socket. */
export const isAnswered = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

/** Resolves once the server listens; rejects with the system's error. */
export const listening = (server: Server, what: object): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(what, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })

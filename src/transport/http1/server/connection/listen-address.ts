/** Binds a listener to a TCP address, to a unix socket, or to an inherited socket. */
import { lstat, chmod, rename, unlink } from 'node:fs/promises'
import { connect } from 'node:net'
import type { AddressInfo, Server } from 'node:net'

export interface TcpAddress {
  readonly host: string
  readonly port: number
  /** Not shared with other workers (`listen.workers`). */
  readonly exclusive?: true
}

export interface UnixAddress {
  /** Absolute; on Windows a named pipe, `\\.\pipe\…`. */
  readonly path: string
  /** Permissions of the socket file. */
  readonly mode: number
}

/** A listening socket that the service manager opened. */
export interface InheritedSocket {
  readonly fd: number
}

export type ListenAddress = TcpAddress | UnixAddress | InheritedSocket

/** Where a server is bound; `release` removes the socket file after the close. */
export interface Bound {
  /** `undefined`: it is a unix socket. */
  readonly tcp: TcpAddress | undefined
  /** `undefined`: it is a TCP socket. */
  readonly path: string | undefined
  readonly release: () => Promise<void>
}

const noRelease = async (): Promise<void> => undefined

/** Rejects with the system's error (`EADDRINUSE` …). */
export const bind = async (server: Server, address: ListenAddress): Promise<Bound> => {
  if ('path' in address && !isNamedPipe(address.path)) return bindUnix(server, address)
  const what = 'fd' in address ? { fd: address.fd } : 'path' in address ? { path: address.path } : address
  await listening(server, what)
  const bound = server.address()
  if (typeof bound === 'string' || bound === null) return { tcp: undefined, path: bound ?? '', release: noRelease }
  // The configured name is kept, as `localhost`.
  const tcp = { host: 'host' in address ? address.host : bound.address, port: (bound satisfies AddressInfo).port }
  return { tcp, path: undefined, release: noRelease }
}

const isNamedPipe = (path: string): boolean => path.startsWith('\\\\')

/**
 * The socket gets its permissions before its final name, so that no other user can connect in between. A socket file that no process
 * listens on is stale and is replaced. Any other file is kept.
 */
const bindUnix = async (server: Server, { path, mode }: UnixAddress): Promise<Bound> => {
  const found = await lstat(path).catch(() => undefined)
  if (found !== undefined && (!found.isSocket() || (await isAnswered(path)))) throw inUse(path)
  const temporary = `${path}.${process.pid}`
  await unlink(temporary).catch(() => undefined)
  await listening(server, { path: temporary })
  try {
    await chmod(temporary, mode)
    await rename(temporary, path)
  } catch (error) {
    server.close()
    throw error
  }
  const { ino } = await lstat(path)
  const remove = async (): Promise<void> => {
    const now = await lstat(path).catch(() => undefined)
    if (now?.ino === ino) await unlink(path).catch(() => undefined)
  }
  // Once: a later process may bind the path, and its file may get the number of the removed one.
  let released: Promise<void> | undefined
  const release = (): Promise<void> => (released ??= remove())
  return { tcp: undefined, path, release }
}

/** Sets the permissions of a bound socket file. A named pipe has none. */
export const setMode = async ({ path, mode }: UnixAddress): Promise<void> => {
  if (!isNamedPipe(path)) await chmod(path, mode)
}

const inUse = (path: string): Error =>
  Object.assign(new Error(`listen EADDRINUSE: ${path}`), { code: 'EADDRINUSE', address: path })

/** Whether a process listens on the unix socket. */
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

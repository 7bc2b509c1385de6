/** `listen`: its certificate, its unix socket and the sockets of the service manager, read and checked where the configuration is. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { UnixAddress } from '../../../transport/http1/server/connection/listen-address.ts'
import { nodeTls } from '../../../transport/http1/server/connection/secure-sockets.ts'
import type { ServerCertificate } from '../../../transport/http1/server/connection/secure-sockets.ts'
import type { Gathered } from '../../read/gather.ts'
import type { Context } from '../../runtime-environment.ts'
import { absolutePath } from '../../syntax/variables.ts'
import { asError } from '../../../values/as-error.ts'

/** Adds a problem at a place below `listen`. */
export type Complain = (path: readonly string[], message: string, remedy: string) => void

/** The first file descriptor that systemd passes. */
const FIRST_FD = 3
/** The longest path of a unix socket, in bytes, where it is shortest (macOS), with what is added while it is bound. */
const MAX_SOCKET_PATH = 103
const WHILE_BOUND = 12

const folderOf = ({ folders }: Gathered, { cwd }: Context): string => folders.get('listen') ?? cwd

/** `listen.http.tls`; adds a problem for files that cannot be used. */
export const buildListenTls = (gathered: Gathered, context: Context, complain: Complain): ServerCertificate | undefined => {
  const tls = gathered.settings.listen?.http?.tls
  if (tls === undefined) return undefined
  if (tls.cert === undefined || tls.key === undefined) {
    complain(['http', 'tls'], '"cert" and "key" belong together', 'give both')
    return undefined
  }
  const files = { cert: tls.cert, key: tls.key }
  const read = (name: 'cert' | 'key'): string | undefined => {
    const file = absolutePath(files[name], folderOf(gathered, context), context.home)
    try {
      const text = readFileSync(file, 'utf8')
      nodeTls().createSecureContext({ [name]: text })
      return text
    } catch (error) {
      const message = `${file} cannot be used: ${asError(error).message}`
      complain(['http', 'tls', name], message, 'name a readable file of PEM, without a passphrase')
      return undefined
    }
  }
  const [cert, key] = [read('cert'), read('key')]
  if (cert === undefined || key === undefined) return undefined
  if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return { cert, key }
  complain(['http', 'tls', 'key'], 'the key is not that of the certificate', 'name the key that "cert" was made for')
  return undefined
}

/** Absolute paths: a certificate that is renewed is a change of the configuration. */
export const listenFilesOf = (gathered: Gathered, context: Context): readonly string[] => {
  const { cert, key } = gathered.settings.listen?.http?.tls ?? {}
  return [cert, key].flatMap((path) =>
    path === undefined ? [] : [absolutePath(path, folderOf(gathered, context), context.home)],
  )
}

/** `listen.unix`. */
export const buildUnix = (gathered: Gathered, context: Context, complain: Complain): UnixAddress | undefined => {
  const { unix: given, unix_mode: mode } = gathered.settings.listen ?? {}
  if (given === undefined) return undefined
  const path = given.startsWith('\\\\') ? given : absolutePath(given, folderOf(gathered, context), context.home)
  if (Buffer.byteLength(path) + WHILE_BOUND > MAX_SOCKET_PATH)
    complain(
      ['unix'],
      `the path of the socket is longer than the ${MAX_SOCKET_PATH - WHILE_BOUND} bytes that fit`,
      'choose a shorter one',
    )
  return { path, mode: Number.parseInt(mode ?? '600', 8) }
}

/** `listen.systemd`: the descriptors that were passed to this process. */
export const buildInherited = ({ settings }: Gathered, context: Context, complain: Complain): readonly number[] => {
  if (settings.listen?.systemd !== true) return []
  const { LISTEN_FDS: count, LISTEN_PID: owner } = context.env
  const remedy = 'start it by a .socket unit, with ExecStart= running node itself and not npx'
  if (count === undefined || !/^[1-9]\d?$/.test(count))
    complain(['systemd'], 'no socket was passed to this process (LISTEN_FDS)', remedy)
  else if (owner !== undefined && context.pid !== undefined && owner !== String(context.pid))
    complain(['systemd'], `sockets were passed to process ${owner}, and this is ${context.pid} (LISTEN_PID)`, remedy)
  else return Array.from({ length: Number(count) }, (_, at) => FIRST_FD + at)
  return []
}

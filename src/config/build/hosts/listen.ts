/** `listen`: its certificate, its unix socket and the sockets of the service manager, checked when the configuration is read. */
import type { UnixAddress } from '../../../transport/http1/server/connection/listen-address.ts'
import type { ServerCertificate } from '../../../transport/http1/server/connection/secure-sockets.ts'
import type { Gathered } from '../../read/gather.ts'
import type { RuntimeEnvironment } from '../../runtime-environment.ts'
import type { ReportProblem } from '../../syntax/problems.ts'
import { absolutePath } from '../../syntax/variables.ts'
import { readTls } from '../tls.ts'

/** The first file descriptor that systemd passes. */
const FIRST_FD = 3
/** Bytes of a socket path that every system accepts (macOS has the lowest limit); while a socket is bound, its name has a suffix. */
const MAX_SOCKET_PATH = 103
const BINDING_SUFFIX = 12

const folderOf = ({ folders }: Gathered, { cwd }: RuntimeEnvironment): string => folders.get('listen') ?? cwd

/** `listen.http.tls`; adds a problem for files that cannot be used. */
export const buildListenTls = (
  gathered: Gathered,
  context: RuntimeEnvironment,
  report: ReportProblem,
): ServerCertificate | undefined => {
  const tls = gathered.settings.listen?.http?.tls
  if (tls === undefined) return undefined
  const reportHttp: ReportProblem = (path, ...texts) => report(['http', ...path], ...texts)
  const { cert, key } = readTls(tls, folderOf(gathered, context), context, reportHttp)
  if (tls.cert === undefined && tls.key === undefined) reportHttp(['tls'], 'names no certificate', 'set "cert" and "key"')
  return cert === undefined || key === undefined ? undefined : { cert, key }
}

/** Absolute paths of the certificate and its key: a renewed certificate is a change of the configuration. */
export const listenFilesOf = (gathered: Gathered, context: RuntimeEnvironment): readonly string[] => {
  const { cert, key } = gathered.settings.listen?.http?.tls ?? {}
  return [cert, key].flatMap((path) =>
    path === undefined ? [] : [absolutePath(path, folderOf(gathered, context), context.home)],
  )
}

/** `listen.unix`. */
export const buildUnix = (gathered: Gathered, context: RuntimeEnvironment, report: ReportProblem): UnixAddress | undefined => {
  const { unix: given, unix_mode: mode } = gathered.settings.listen ?? {}
  if (given === undefined) {
    const remedy = 'remove it, or name the socket: unix: ./trunkline.sock'
    if (mode !== undefined) report(['unix_mode'], '"unix_mode" without unix has no effect', remedy)
    return undefined
  }
  const path = given.startsWith('\\\\') ? given : absolutePath(given, folderOf(gathered, context), context.home)
  const maxBytes = MAX_SOCKET_PATH - BINDING_SUFFIX
  if (Buffer.byteLength(path) > maxBytes)
    report(['unix'], `the path of the socket is longer than the ${maxBytes} bytes that fit`, 'choose a shorter one')
  return { path, mode: Number.parseInt(mode ?? '600', 8) }
}

/** `listen.systemd`: the descriptors that were passed to this process. */
export const buildInherited = ({ settings }: Gathered, context: RuntimeEnvironment, report: ReportProblem): readonly number[] => {
  if (settings.listen?.systemd !== true) return []
  const { LISTEN_FDS: count, LISTEN_PID: owner } = context.env
  const remedy = 'start it by a .socket unit, with ExecStart= running node itself and not npx'
  if (count === undefined || !/^[1-9]\d?$/.test(count))
    report(['systemd'], 'no socket was passed to this process (LISTEN_FDS)', remedy)
  else if (owner !== undefined && context.pid !== undefined && owner !== String(context.pid))
    report(['systemd'], `sockets were passed to process ${owner}, and this is ${context.pid} (LISTEN_PID)`, remedy)
  else return Array.from({ length: Number(count) }, (_, at) => FIRST_FD + at)
  return []
}

/** The files of a `tls` section, read and checked, so that a wrong file is an error with a place instead of a failed handshake. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TlsSettings } from '../../transport/http1/client/http-client.ts'
import { nodeTls } from '../../transport/http1/server/connection/secure-sockets.ts'
import { asError } from '../../values/as-error.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import type { GatheredServer } from '../read/gather.ts'
import type { RuntimeEnvironment } from '../runtime-environment.ts'
import type { ServerEntry } from '../schema/server-schema.ts'
import type { ReportProblem } from '../syntax/problems.ts'
import { child, textOf } from '../syntax/tree.ts'
import { absolutePath } from '../syntax/variables.ts'

const FILES = ['ca', 'cert', 'key'] as const

/** `tls` of one server. */
export const buildTls = (
  { tls, url }: ServerEntry,
  folder: string,
  context: RuntimeEnvironment,
  report: ReportProblem,
): TlsSettings | undefined => {
  if (tls === undefined) return undefined
  if (url !== undefined && url.protocol !== 'https:')
    report(['tls'], `"tls" has no effect on ${url.protocol}//`, 'remove it, or give an https:// URL')
  return readTls(tls, folder, context, report)
}

/** Reads the files that are named; reports those that cannot be used, below `tls`. */
export const readTls = (
  tls: NonNullable<ServerEntry['tls']>,
  folder: string,
  { home }: RuntimeEnvironment,
  report: ReportProblem,
): TlsSettings => {
  if ((tls.cert === undefined) !== (tls.key === undefined))
    report(['tls'], '"cert" and "key" belong together', 'give both, or neither')
  const read = (name: (typeof FILES)[number]): string | undefined => {
    const path = tls[name]
    if (path === undefined) return undefined
    const file = absolutePath(path, folder, home)
    try {
      const text = decodeUtf8(readFileSync(file)) ?? ''
      if (name === 'key') nodeTls().createSecureContext({ key: text })
      else nodeTls().createSecureContext({ [name]: new X509Certificate(text).toString() })
      return text
    } catch (error) {
      const remedy = `name a readable PEM file${name === 'key' ? ' without a passphrase' : ''}`
      report(['tls', name], `${file} cannot be used: ${asError(error).message}`, remedy)
      return undefined
    }
  }
  const [ca, cert, key] = [read('ca'), read('cert'), read('key')]
  if (cert !== undefined && key !== undefined && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    report(['tls', 'key'], 'the key does not belong to the certificate', 'name the private key of "cert"')
  return { ca, cert, key, serverName: tls.server_name }
}

/** Absolute paths of these files: a renewed certificate is a change of the configuration. */
export const tlsFilesOf = ({ tree, folder }: GatheredServer, { home }: RuntimeEnvironment): readonly string[] =>
  FILES.flatMap((name) => {
    const path = textOf(child(child(tree, 'tls'), name))
    return path === undefined ? [] : [absolutePath(path, folder, home)]
  })

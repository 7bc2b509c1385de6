/** `tls` of one server or of the store: its files, read and checked, so that a wrong one is an error with a place and not a handshake that fails. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TlsSettings } from '../../transport/http1/client/http-client.ts'
import { nodeTls } from '../../transport/http1/server/connection/secure-sockets.ts'
import { asError } from '../../values/as-error.ts'
import type { GatheredServer } from '../read/gather.ts'
import type { ServerEntry } from '../schema/server-schema.ts'
import type { Context } from '../runtime-environment.ts'
import { child } from '../syntax/tree.ts'
import { absolutePath } from '../syntax/variables.ts'

type Complain = (path: readonly string[], message: string, remedy: string) => void

const FILES = ['ca', 'cert', 'key'] as const

export const buildTls = (
  { tls, url }: ServerEntry,
  folder: string,
  context: Context,
  complain: Complain,
): TlsSettings | undefined => {
  if (tls === undefined) return undefined
  if (url !== undefined && url.protocol !== 'https:')
    complain(['tls'], `"tls" has no effect on ${url.protocol}//`, 'remove it, or give an https:// URL')
  return readTls(tls, folder, context, complain)
}

/** Reads the files that are named; adds a problem for one that cannot be used. */
export const readTls = (
  tls: NonNullable<ServerEntry['tls']>,
  folder: string,
  { home }: Context,
  complain: Complain,
): TlsSettings => {
  if ((tls.cert === undefined) !== (tls.key === undefined))
    complain(['tls'], '"cert" and "key" belong together', 'give both, or neither')
  const read = (name: (typeof FILES)[number]): string | undefined => {
    const path = tls[name]
    if (path === undefined) return undefined
    const file = absolutePath(path, folder, home)
    try {
      const text = readFileSync(file, 'utf8')
      if (name === 'key') nodeTls().createSecureContext({ key: text })
      else nodeTls().createSecureContext({ [name]: new X509Certificate(text).toString() })
      return text
    } catch (error) {
      complain(['tls', name], `${file} cannot be used: ${asError(error).message}`, 'name a readable file of PEM')
      return undefined
    }
  }
  const [ca, cert, key] = [read('ca'), read('cert'), read('key')]
  if (cert !== undefined && key !== undefined && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    complain(['tls', 'key'], 'the key is not that of the certificate', 'name the key that "cert" was made for')
  return { ca, cert, key, serverName: tls.server_name }
}

/** Absolute paths: a certificate that is renewed is a change of the configuration. */
export const tlsFilesOf = ({ tree, folder }: GatheredServer, { home }: Context): readonly string[] =>
  FILES.flatMap((name) => {
    const given = child(child(tree, 'tls'), name)
    return given?.kind === 'scalar' && typeof given.value === 'string' ? [absolutePath(given.value, folder, home)] : []
  })

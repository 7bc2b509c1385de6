/** Certificates of a test's own authority, made by openssl: one for a server's names, one for a client. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificates extends Disposable {
  readonly folder: string
  /** Files of PEM in `folder`. */
  path(name: 'ca' | 'server' | 'server.key' | 'client' | 'client.key'): string
  text(name: 'ca' | 'server' | 'server.key' | 'client' | 'client.key'): string
}

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']

/** `names`: DNS names in the server's certificate. */
export const makeCertificates = (...names: readonly string[]): Certificates => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-pem-'))
  const path = (name: string): string => join(folder, `${name}.pem`)
  const openssl = (...args: readonly string[]): void => void execFileSync('openssl', args, { stdio: 'pipe' })
  openssl('req', '-x509', ...KEY, '-keyout', path('ca.key'), '-out', path('ca'), '-subj', '/CN=test authority')
  for (const [name, extension] of [
    ['server', `subjectAltName=${names.map((dns) => `DNS:${dns}`).join(',')}`],
    ['client', 'extendedKeyUsage=clientAuth'],
  ] as const) {
    writeFileSync(path('ext'), extension)
    openssl('req', ...KEY, '-keyout', path(`${name}.key`), '-out', path('csr'), '-subj', `/CN=${name}`)
    const signed = ['-CA', path('ca'), '-CAkey', path('ca.key'), '-CAcreateserial', '-days', '2', '-extfile', path('ext')]
    openssl('x509', '-req', '-in', path('csr'), ...signed, '-out', path(name))
  }
  return {
    folder,
    path,
    text: (name) => readFileSync(path(name), 'utf8'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

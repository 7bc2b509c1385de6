/**
 * Certificates of a test's own authority: one for a server's names, one for a client. They are written here, as Node makes keys and
 * signatures but no certificates, and a machine that has only Node and npm has no openssl.
 */
import { createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

type Name = 'ca' | 'server' | 'server.key' | 'client' | 'client.key'

export interface Certificates extends Disposable {
  readonly folder: string
  /** Files of PEM in `folder`. */
  path(name: Name): string
  text(name: Name): string
}

/** `names`: DNS names in the server's certificate. */
export const makeCertificates = (...names: readonly string[]): Certificates => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-pem-'))
  const path = (name: Name): string => join(folder, `${name}.pem`)
  const [authority, server, client] = [newKey(), newKey(), newKey()]
  const signed = (subject: string, key: KeyObject, extension: Buffer): string =>
    certificate({ subject, key, issuer: 'test authority', issuerKey: authority, extension })
  const texts: Readonly<Record<Name, string>> = {
    ca: signed('test authority', authority, BASIC_CONSTRAINTS_CA),
    server: signed('server', server, subjectAltNames(names)),
    'server.key': pemOf(server),
    client: signed('client', client, CLIENT_AUTH),
    'client.key': pemOf(client),
  }
  for (const [name, text] of Object.entries(texts) as [Name, string][]) writeFileSync(path(name), text)
  return {
    folder,
    path,
    text: (name) => texts[name],
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const newKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()

const DAY_MS = 86_400_000

/** X.509, version 3 (RFC 5280, section 4.1), valid from yesterday to tomorrow. */
const certificate = (of: {
  readonly subject: string
  readonly key: KeyObject
  readonly issuer: string
  readonly issuerKey: KeyObject
  /** One extension, in DER. */
  readonly extension: Buffer
}): string => {
  const toBeSigned = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    // A positive number of full length.
    integer(Buffer.concat([Buffer.from([0x40]), randomBytes(15)])),
    ECDSA_WITH_SHA256,
    nameOf(of.issuer),
    sequence(utcTime(Date.now() - DAY_MS), utcTime(Date.now() + DAY_MS)),
    nameOf(of.subject),
    createPublicKey(of.key).export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(of.extension)),
  )
  const bytes = sequence(toBeSigned, ECDSA_WITH_SHA256, bitString(sign('sha256', toBeSigned, of.issuerKey)))
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** A tag, the length, the content (X.690). */
const der = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const head = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...head]), content])
}

const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts)
const integer = (bytes: Buffer): Buffer => der(0x02, bytes)
const bitString = (bytes: Buffer): Buffer => der(0x03, Buffer.from([0]), bytes)
const octets = (bytes: Buffer): Buffer => der(0x04, bytes)
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))
/** `YYMMDDhhmmssZ` */
const utcTime = (atMs: number): Buffer =>
  der(0x17, Buffer.from(`${new Date(atMs).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14)}Z`))

/** 2.5.4.3, common name. */
const nameOf = (name: string): Buffer => sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name)))))
/** 1.2.840.10045.4.3.2 */
const ECDSA_WITH_SHA256 = sequence(oid('2a8648ce3d040302'))
/** 2.5.29.19, critical: may sign others. */
const BASIC_CONSTRAINTS_CA = sequence(
  oid('551d13'),
  der(0x01, Buffer.from([0xff])),
  octets(sequence(der(0x01, Buffer.from([0xff])))),
)
/** 2.5.29.37 with 1.3.6.1.5.5.7.3.2, client authentication. */
const CLIENT_AUTH = sequence(oid('551d25'), octets(sequence(oid('2b06010505070302'))))
/** 2.5.29.17 */
const subjectAltNames = (names: readonly string[]): Buffer =>
  sequence(oid('551d11'), octets(sequence(...names.map((name) => der(0x82, Buffer.from(name))))))

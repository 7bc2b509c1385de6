/**
 * Reads a ZIP archive within limits of members and bytes. Paths that leave the folder are refused. Supports the part of the format that
 * bundles use: stored and deflated members, no encryption, no ZIP64.
 */
import { posix } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { attempt } from '../values/attempt.ts'
import { InstallError } from './inputs.ts'

export interface ZipLimits {
  readonly maxMembers: number
  /** Of all members together, unpacked. */
  readonly maxBytes: number
}

export const DEFAULT_ZIP_LIMITS: ZipLimits = { maxMembers: 50_000, maxBytes: 1024 ** 3 }

export interface ZipMember {
  /** Relative, with `/`. */
  readonly path: string
  /** Whether the archive marks the file as executable. */
  readonly isExecutable: boolean
  /** Unpacks the content. Throws `InstallError` for a damaged member. */
  readonly read: () => Buffer
}

const END = 0x06054b50
const CENTRAL = 0x02014b50
const LOCAL = 0x04034b50
const MAX_COMMENT = 0xffff

/** The files of the archive. Throws `InstallError` for an invalid or too large archive. */
export const readZip = (bytes: Buffer, { maxMembers, maxBytes }: ZipLimits = DEFAULT_ZIP_LIMITS): readonly ZipMember[] => {
  const broken = (): InstallError => new InstallError('it is not a ZIP archive that can be read')
  let end = bytes.length - 22
  while (end >= Math.max(0, bytes.length - 22 - MAX_COMMENT) && bytes.readUInt32LE(end) !== END) end--
  if (end < 0 || bytes.readUInt32LE(end) !== END) throw broken()
  const count = bytes.readUInt16LE(end + 10)
  if (count > maxMembers || count === 0xffff) throw new InstallError(`it contains more than ${maxMembers} files`)
  let at = bytes.readUInt32LE(end + 16)
  let total = 0
  const members: ZipMember[] = []
  try {
    for (let index = 0; index < count; index++) {
      if (bytes.readUInt32LE(at) !== CENTRAL) throw broken()
      const [flags, method] = [bytes.readUInt16LE(at + 8), bytes.readUInt16LE(at + 10)]
      const [packed, size] = [bytes.readUInt32LE(at + 20), bytes.readUInt32LE(at + 24)]
      const nameLength = bytes.readUInt16LE(at + 28)
      const [extra, comment] = [bytes.readUInt16LE(at + 30), bytes.readUInt16LE(at + 32)]
      const mode = bytes.readUInt32LE(at + 38) >>> 16
      const local = bytes.readUInt32LE(at + 42)
      const path = bytes.toString('utf8', at + 46, at + 46 + nameLength)
      at += 46 + nameLength + extra + comment
      total += size
      if (total > maxBytes) throw new InstallError(`it unpacks to more than ${maxBytes} bytes`)
      if (path.endsWith('/')) continue
      if (!isInside(path)) throw new InstallError(`it contains a file outside of its folder (${JSON.stringify(path)})`)
      if ((flags & 1) !== 0 || (method !== 0 && method !== 8))
        throw new InstallError('it is encrypted, or compressed in a way that is not supported')
      // A symbolic link could point to any file.
      if ((mode & 0o170000) === 0o120000) throw new InstallError(`it contains a symbolic link (${JSON.stringify(path)})`)
      const read = (): Buffer => {
        if (bytes.readUInt32LE(local) !== LOCAL) throw broken()
        const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28)
        const data = bytes.subarray(start, start + packed)
        const content = method === 0 ? data : attempt(() => inflateRawSync(data, { maxOutputLength: Math.max(size, 1) }))
        if (content?.length !== size) throw broken()
        return content
      }
      members.push({ path, isExecutable: (mode & 0o111) !== 0, read })
    }
  } catch (error) {
    throw error instanceof RangeError ? broken() : error
  }
  return members
}

const isInside = (path: string): boolean =>
  !path.includes('\\') &&
  !path.includes('\0') &&
  !/^[a-z]:/i.test(path) &&
  !posix.isAbsolute(path) &&
  !posix.normalize(path).startsWith('..')

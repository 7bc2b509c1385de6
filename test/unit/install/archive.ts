/** ZIP archives, written byte by byte: also those that no program would write. */
import { deflateRawSync } from 'node:zlib'

export interface Member {
  readonly path: string
  readonly text: string
  readonly isDeflated?: boolean
  readonly mode?: number
  readonly flags?: number
  readonly method?: number
  /** Extra fields before the data, and in the directory; and a comment in the directory. */
  readonly extra?: readonly [local: string, central: string]
  readonly comment?: string
}

/** Writes the members, their directory and its end, with `comment` after it. */
export const zipOf = (members: readonly Member[], comment = ''): Buffer => {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const { path, text, isDeflated = false, mode = 0, flags = 0, method = isDeflated ? 8 : 0, ...more } of members) {
    const [localExtra, centralExtra] = more.extra ?? ['', '']
    const note = more.comment ?? ''
    const name = Buffer.from(path)
    const data = isDeflated ? deflateRawSync(text) : Buffer.from(text)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50, 0)
    local.writeUInt16LE(name.length, 26)
    local.writeUInt16LE(localExtra.length, 28)
    const entry = Buffer.alloc(46)
    entry.writeUInt32LE(0x02014b50, 0)
    entry.writeUInt16LE(flags, 8)
    entry.writeUInt16LE(method, 10)
    entry.writeUInt32LE(data.length, 20)
    entry.writeUInt32LE(Buffer.byteLength(text), 24)
    entry.writeUInt16LE(name.length, 28)
    entry.writeUInt16LE(centralExtra.length, 30)
    entry.writeUInt16LE(note.length, 32)
    entry.writeUInt32LE(mode * 0x10000, 38)
    entry.writeUInt32LE(at, 42)
    locals.push(local, name, Buffer.from(localExtra), data)
    directory.push(entry, name, Buffer.from(centralExtra), Buffer.from(note))
    at += local.length + name.length + localExtra.length + data.length
  }
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(members.length, 10)
  end.writeUInt32LE(at, 16)
  end.writeUInt16LE(comment.length, 20)
  return Buffer.concat([...locals, ...directory, end, Buffer.from(comment)])
}

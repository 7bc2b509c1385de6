/** The file of the audit log: no line is lost in silence, whatever becomes of the disk. */
import { appendFile, chmod, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { AuditFile } from '../../src/audit-file.ts'
import type { AppendHandle, AuditFileOptions } from '../../src/audit-file.ts'

const MIB = 1024 * 1024

/** A disk with so much room; writes wait while it is stopped. */
class Disk implements AppendHandle {
  text = ''
  writes = 0
  room = Infinity
  gate: Promise<void> | undefined
  isClosed = false

  async write(bytes: Uint8Array, offset: number): Promise<{ bytesWritten: number }> {
    this.writes++
    await this.gate
    const left = bytes.subarray(offset)
    if (this.room <= 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    const written = left.subarray(0, Math.min(left.length, this.room))
    this.room -= written.length
    this.text += Buffer.from(written).toString()
    return { bytesWritten: written.length }
  }
  close(): Promise<void> {
    this.isClosed = true
    return Promise.resolve()
  }
}

const log = { info: vi.fn<(facts: object, text: string) => void>(), error: vi.fn<(facts: object, text: string) => void>() }
const onto = (disk: Disk, onFailure: AuditFileOptions['onFailure'] = 'refuse'): Promise<AuditFile> =>
  AuditFile.open({ file: '/audit', onFailure }, log, () => Promise.resolve(disk))

/** All lines of this turn are written, or have failed. */
const turn = async (): Promise<void> => {
  for (let times = 0; times < 3; times++) await new Promise(setImmediate)
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  log.error.mockClear()
})
afterEach(() => vi.useRealTimers())

test('lines of one turn leave in one write, in their order', async () => {
  const disk = new Disk()
  await using file = await onto(disk)
  for (const line of ['{"a":1}', '{"b":2}', '{"c":3}']) file.write(line)
  await turn()
  expect([disk.text, disk.writes]).toEqual(['{"a":1}\n{"b":2}\n{"c":3}\n', 1])
  expect(file.state).toMatchObject({ written: 3, waiting: 0, dropped: 0 })
})

describe('at the end', () => {
  test('what is left is written, the file is closed, and nothing is said', async () => {
    const disk = new Disk()
    const file = await onto(disk)
    file.write('{"a":1}')
    await file[Symbol.asyncDispose]()
    expect([disk.text, disk.isClosed]).toEqual(['{"a":1}\n', true])
    expect(log.error).not.toHaveBeenCalled()
  })

  test('lines that could not be written are counted', async () => {
    const disk = new Disk()
    const file = await onto(disk)
    disk.room = 0
    for (const line of ['{"a":1}', '{"b":2}']) file.write(line)
    await turn()
    log.error.mockClear()
    await file[Symbol.asyncDispose]()
    expect(log.error).toHaveBeenCalledExactlyOnceWith({ file: '/audit', lines: 2 }, 'lines of the audit log are lost')
  })
})

describe('a disk that is full', () => {
  test('stops calls, is told once, and holds no line twice and none by halves when there is room again', async () => {
    const disk = new Disk()
    await using file = await onto(disk)
    disk.room = 10
    file.write('{"a":"first"}')
    file.write('{"a":"second"}')
    await turn()
    expect(file.trouble).toBe('ENOSPC')
    file.write('{"a":"third"}')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(log.error).toHaveBeenCalledTimes(1)
    expect(file.state).toMatchObject({ written: 0, waiting: 3, error: 'ENOSPC' })
    disk.room = Infinity
    await vi.advanceTimersByTimeAsync(1_000)
    await turn()
    expect(disk.text).toBe('{"a":"first"}\n{"a":"second"}\n{"a":"third"}\n')
    expect([file.trouble, file.state.dropped]).toEqual([undefined, 0])
  })

  test('rotation meanwhile: the line of which half was written is written whole', async () => {
    const disks = [new Disk(), new Disk()]
    const open = disks.values()
    await using file = await AuditFile.open({ file: '/audit', onFailure: 'refuse' }, log, () =>
      Promise.resolve(open.next().value as Disk),
    )
    disks[0]!.room = 17
    file.write('{"a":"first"}')
    file.write('{"a":"second"}')
    await turn()
    await file.reopen()
    await turn()
    expect([disks[0]!.text.split('\n')[0], disks[1]!.text]).toEqual(['{"a":"first"}', '{"a":"second"}\n'])
  })

  test('with `drop` calls go on; what is lost is counted, and said in the next line', async () => {
    const disk = new Disk()
    await using file = await onto(disk, 'drop')
    disk.room = 0
    const big = JSON.stringify({ a: 'x'.repeat(MIB) })
    for (let times = 0; times < 20; times++) file.write(big)
    await turn()
    const { dropped } = file.state
    expect([file.trouble, dropped > 0]).toEqual([undefined, true])
    disk.room = Infinity
    await vi.advanceTimersByTimeAsync(1_000)
    await turn()
    file.write('{"a":1}')
    await turn()
    const lines = disk.text.trimEnd().split('\n')
    expect(lines).toHaveLength(20 - dropped + 1)
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual({ dropped, a: 1 })
    expect(file.state).toMatchObject({ written: lines.length, dropped, waiting: 0 })
  })
})

test('a disk that is slow stops calls before there is no room for those under way', async () => {
  const disk = new Disk()
  const { promise, resolve } = Promise.withResolvers<void>()
  disk.gate = promise
  await using file = await onto(disk)
  const big = JSON.stringify({ a: 'x'.repeat(MIB) })
  for (let times = 0; times < 7; times++) file.write(big)
  await turn()
  expect(file.trouble).toBeUndefined()
  for (let times = 0; times < 3; times++) file.write(big)
  expect(file.trouble).toBe('the disk is too slow')
  resolve()
  await turn()
  expect(file.state).toMatchObject({ written: 10, dropped: 0 })
  expect(file.trouble).toBeUndefined()
})

describe('a real file', () => {
  let folder: string
  beforeEach(async () => {
    vi.useRealTimers()
    folder = await mkdtemp(join(tmpdir(), 'trunkline-audit-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))
  const path = (): string => join(folder, 'audit.ndjson')
  const opened = (): Promise<AuditFile> => AuditFile.open({ file: path(), onFailure: 'refuse' }, log)

  test('is for its owner alone, also where it was not, and what was in it stays', async () => {
    await writeFile(path(), '{"old":1}\n{"half":')
    await chmod(path(), 0o644)
    const file = await opened()
    file.write('{"new":1}')
    await file[Symbol.asyncDispose]()
    expect((await stat(path())).mode & 0o777).toBe(0o600)
    expect(await readFile(path(), 'utf8')).toBe('{"old":1}\n{"half":\n{"new":1}\n')
  })

  test('may be renamed: lines go on in it until it is opened anew', async () => {
    await using file = await opened()
    file.write('{"n":1}')
    await rename(path(), join(folder, 'old'))
    file.write('{"n":2}')
    await file.reopen()
    file.write('{"n":3}')
    await file[Symbol.asyncDispose]()
    const both = [await readFile(join(folder, 'old'), 'utf8'), await readFile(path(), 'utf8')].join('')
    expect(both).toBe('{"n":1}\n{"n":2}\n{"n":3}\n')
  })

  test('that cannot be opened is told with its option; a folder is none', async () => {
    await appendFile(path(), '')
    await expect(AuditFile.open({ file: join(path(), 'x'), onFailure: 'refuse' }, log)).rejects.toThrow(
      /^telemetry\.log\.audit: .*\/x cannot be opened \(ENOTDIR\); name a file that can be written to$/,
    )
    await expect(AuditFile.open({ file: folder, onFailure: 'refuse' }, log)).rejects.toThrow('cannot be opened (EISDIR)')
  })
})

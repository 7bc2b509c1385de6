/** The file of the audit log: no line is lost in silence, whatever becomes of the disk. */
import { appendFile, chmod, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
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

test('lines of one turn leave in one write, in their order', async () => {
  const disk = new Disk()
  await using file = await onto(disk)
  for (const line of ['{"a":1}', '{"b":2}', '{"c":3}']) file.write(line)
  await turn()
  expect([disk.text, disk.writes]).toEqual(['{"a":1}\n{"b":2}\n{"c":3}\n', 1])
  expect(file.state).toMatchObject({ written: 3, waiting: 0, dropped: 0 })
})

test('lines of several turns leave in their order, one write for each turn', async () => {
  const disk = new Disk()
  await using file = await onto(disk)
  for (const line of ['{"a":1}', '{"b":2}', '{"c":3}']) {
    file.write(line)
    await turn()
  }
  expect([disk.text, disk.writes]).toEqual(['{"a":1}\n{"b":2}\n{"c":3}\n', 3])
})

test('lines that come while a write is under way are counted, and leave in the next one', async () => {
  const disk = new Disk()
  const { promise, resolve } = Promise.withResolvers<void>()
  disk.gate = promise
  await using file = await onto(disk)
  file.write('{"a":1}')
  file.write('{"b":2}')
  await turn()
  file.write('{"c":3}')
  await turn()
  expect(file.state).toEqual({ file: '/audit', written: 0, dropped: 0, waiting: 3, error: undefined })
  resolve()
  await turn()
  expect([disk.text, disk.writes]).toEqual(['{"a":1}\n{"b":2}\n{"c":3}\n', 2])
  expect(file.state).toMatchObject({ written: 3, waiting: 0 })
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
    expect(disk.isClosed).toBe(true)
  })
})

describe('at the end of the process', () => {
  test('a disk that does not answer is waited for two seconds, and what it has not taken is lost', async () => {
    const disk = new Disk()
    const { promise, resolve: answer } = Promise.withResolvers<void>()
    disk.gate = promise
    const file = await onto(disk)
    file.write('{"a":1}')
    await turn()
    let isOver = false
    const end = file[Symbol.asyncDispose]().then(() => (isOver = true))
    await vi.advanceTimersByTimeAsync(1_999)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await end
    expect(log.error).toHaveBeenCalledExactlyOnceWith({ file: '/audit', lines: 1 }, 'lines of the audit log are lost')
    expect(disk.isClosed).toBe(false)
    // A reload goes on with another file: this one must not stay open.
    answer()
    await turn()
    expect(disk.isClosed).toBe(true)
  })

  test('no timer is left, whether the last lines were written or not', async () => {
    for (const room of [0, Infinity]) {
      const disk = new Disk()
      const file = await onto(disk)
      disk.room = room
      file.write('{"a":1}')
      await turn()
      await file[Symbol.asyncDispose]()
      expect(vi.getTimerCount()).toBe(0)
    }
  })

  test('a file that cannot be closed is none of its matters', async () => {
    const disk = new Disk()
    disk.close = () => Promise.reject(new Error('closed already'))
    const file = await onto(disk)
    await file.reopen()
    await file[Symbol.asyncDispose]()
    expect(log.error).not.toHaveBeenCalled()
  })
})

describe('a disk that is full', () => {
  test('is tried again each second, and not with each line', async () => {
    const disk = new Disk()
    await using file = await onto(disk)
    disk.room = 0
    for (const line of ['{"a":1}', '{"b":2}']) {
      file.write(line)
      await turn()
    }
    expect([disk.writes, vi.getTimerCount()]).toEqual([1, 1])
    await vi.advanceTimersByTimeAsync(999)
    expect(disk.writes).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect([disk.writes, vi.getTimerCount()]).toEqual([2, 1])
    // Opened again, it is tried at once: the second that began before is over.
    await file.reopen()
    await turn()
    expect([disk.writes, vi.getTimerCount()]).toEqual([3, 1])
    disk.room = Infinity
  })

  test.each([
    ['refuse', 'calls are refused until it can'],
    ['drop', 'lines are dropped once many wait'],
  ] as const)('with `%s` it is said that %s, and when it is written again', async (onFailure, then) => {
    log.info.mockClear()
    const disk = new Disk()
    await using file = await onto(disk, onFailure)
    disk.room = 0
    file.write('{"a":1}')
    await turn()
    const message = `the audit log cannot be written: ${then} (telemetry.log.audit_on_failure)`
    expect(log.error.mock.calls).toEqual([[{ file: '/audit', error: 'no space left on device' }, message]])
    expect(log.info).not.toHaveBeenCalled()
    disk.room = Infinity
    await vi.advanceTimersByTimeAsync(1_000)
    await turn()
    expect(log.info.mock.calls).toEqual([[{ file: '/audit', dropped: 0 }, 'the audit log is written again']])
    expect(file.state.error).toBeUndefined()
  })

  test('an error without a code is told by its text', async () => {
    const disk = new Disk()
    await using file = await onto(disk)
    const write = disk.write.bind(disk)
    disk.write = () => Promise.reject(new Error('a strange disk'))
    file.write('{"a":1}')
    await turn()
    expect(file.trouble).toBe('a strange disk')
    disk.write = write
  })

  test('keeps no process alive', async () => {
    vi.useRealTimers()
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const disk = new Disk()
    const file = await onto(disk)
    disk.room = 0
    file.write('{"a":1}')
    await turn()
    expect(timers.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toEqual([false])
    await file[Symbol.asyncDispose]()
  })

  test.each([
    [13, '{"a":"first"}', '{"a":"first"}\n{"a":"second"}\n'],
    [14, '{"a":"first"}\n', '{"a":"second"}\n'],
  ])('rotation after %i bytes: each line is whole in the one file or in the other', async (room, before, after) => {
    const disks = [new Disk(), new Disk()]
    const open = disks.values()
    await using file = await AuditFile.open({ file: '/audit', onFailure: 'refuse' }, log, () =>
      Promise.resolve(open.next().value as Disk),
    )
    disks[0]!.room = room
    file.write('{"a":"first"}')
    file.write('{"a":"second"}')
    await turn()
    await file.reopen()
    await turn()
    expect(disks.map(({ text }) => text)).toEqual([before, after])
    expect(disks.map(({ isClosed }) => isClosed)).toEqual([true, false])
  })

  test('with `drop` it is said once that lines are lost, until one is written', async () => {
    const disk = new Disk()
    await using file = await onto(disk, 'drop')
    disk.room = 0
    const big = JSON.stringify({ a: 'x'.repeat(MIB) })
    const fill = async (): Promise<void> => {
      for (let times = 0; times < 25; times++) file.write(big)
      await turn()
    }
    const told = () => log.error.mock.calls.filter(([, text]) => text === 'the audit log has no room: lines are dropped').length
    await fill()
    expect(told()).toBe(1)
    disk.room = Infinity
    await vi.advanceTimersByTimeAsync(1_000)
    await turn()
    file.write('{"a":1}')
    await turn()
    disk.room = 0
    await fill()
    expect(told()).toBe(2)
    disk.room = Infinity
  })

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

  // Of the second line half is written, or of both nothing: no line is lost, and none is cut.
  test.each([
    [17, ['{"a":"first"}'], '{"a":"second"}\n'],
    [0, [''], '{"a":"first"}\n{"a":"second"}\n'],
  ])('F-26 rotation while the disk takes %i bytes', async (room, old, written) => {
    const disks = [new Disk(), new Disk()]
    const open = disks.values()
    await using file = await AuditFile.open({ file: '/audit', onFailure: 'refuse' }, log, () =>
      Promise.resolve(open.next().value as Disk),
    )
    disks[0]!.room = room
    file.write('{"a":"first"}')
    file.write('{"a":"second"}')
    await turn()
    await file.reopen()
    await turn()
    expect(disks[0]!.text.split('\n').slice(0, 1)).toEqual(old)
    expect(disks[1]!.text).toBe(written)
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

test('calls stop beyond 8 MiB that wait, and lines are lost beyond 16', async () => {
  const disk = new Disk()
  const { promise, resolve } = Promise.withResolvers<void>()
  disk.gate = promise
  await using file = await onto(disk)
  file.write('x'.repeat(8 * MIB))
  expect(file.trouble).toBeUndefined()
  file.write('x')
  expect(file.trouble).toBe('the disk is too slow')
  file.write('x'.repeat(8 * MIB - 1))
  file.write('y')
  expect(file.state).toMatchObject({ waiting: 4, dropped: 0 })
  file.write('z')
  expect(file.state).toMatchObject({ waiting: 4, dropped: 1 })
  resolve()
  await turn()
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

  test('that ends with a whole line, or is empty, gets no empty one', async () => {
    for (const before of ['', '{"old":1}\n']) {
      await writeFile(path(), before)
      const file = await opened()
      file.write('{"new":1}')
      await file[Symbol.asyncDispose]()
      expect(await readFile(path(), 'utf8')).toBe(`${before}{"new":1}\n`)
    }
  })

  test('that cannot be opened again is told, and the one before stays in use', async () => {
    await using file = await opened()
    await rename(path(), join(folder, 'old'))
    await mkdir(path())
    await expect(file.reopen()).rejects.toThrow('cannot be opened (EISDIR)')
    file.write('{"a":1}')
    await file[Symbol.asyncDispose]()
    expect(await readFile(join(folder, 'old'), 'utf8')).toBe('{"a":1}\n')
  })

  test.runIf(process.platform === 'linux')('that is a device is none', async () => {
    await expect(AuditFile.open({ file: '/dev/null', onFailure: 'refuse' }, log)).rejects.toThrow(
      '/dev/null cannot be opened (it is not a regular file)',
    )
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

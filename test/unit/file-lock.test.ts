/** A lock between processes: one holder at a time, none for ever, and none where the disk supports none. */
import {
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { acquireFileLock, releaseFileLock } from '../../src/file-lock.ts'

let folder: string
let lock: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-lock-'))
  lock = join(folder, 'below', 'a.lock')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Time in which a lock that others hold is looked at several times. */
const aWhile = (): Promise<unknown> => vi.advanceTimersByTimeAsync(120)

test('is held by one at a time, in a folder that is made for it, for its owner alone', async () => {
  expect(await acquireFileLock(lock, 60_000)).toBe(true)
  expect(statSync(lock).mode & 0o777).toBe(0o600)
  let isHeld = false
  const second = acquireFileLock(lock, 60_000).finally(() => (isHeld = true))
  await aWhile()
  expect(isHeld).toBe(false)
  releaseFileLock(lock)
  await aWhile()
  expect(await second).toBe(true)
  releaseFileLock(lock)
  expect(existsSync(lock)).toBe(false)
  // Releasing what is not held changes nothing.
  releaseFileLock(lock)
})

test('is taken over where its holder has ended, not before', async () => {
  expect(await acquireFileLock(lock, 60_000)).toBe(true)
  const agoS = Date.now() / 1e3 - 30
  utimesSync(lock, agoS, agoS)
  let isHeld = false
  const second = acquireFileLock(lock, 60_000).finally(() => (isHeld = true))
  await aWhile()
  expect(isHeld).toBe(false)
  expect(await acquireFileLock(lock, 20_000)).toBe(true)
  releaseFileLock(lock)
  await aWhile()
  expect(await second).toBe(true)
})

test('a link to nothing is a lock like any other: waited for, and taken over when it is old', async () => {
  expect(await acquireFileLock(lock, 60_000)).toBe(true)
  releaseFileLock(lock)
  symlinkSync(join(folder, 'nowhere'), lock)
  let isHeld = false
  const waiting = acquireFileLock(lock, 20_000).finally(() => (isHeld = true))
  await aWhile()
  expect(isHeld).toBe(false)
  const agoS = Date.now() / 1e3 - 30
  lutimesSync(lock, agoS, agoS)
  await aWhile()
  expect(await waiting).toBe(true)
  expect(lstatSync(lock).isFile()).toBe(true)
})

test('a lock of the future is from before the clock was set back, and is not waited for until then', async () => {
  expect(await acquireFileLock(lock, 60_000)).toBe(true)
  const thenS = Date.now() / 1e3 + 3_600
  utimesSync(lock, thenS, thenS)
  expect(await acquireFileLock(lock, 20_000)).toBe(true)
})

test('false where the disk supports none: its folder cannot be made, or the file cannot', async () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  expect(await acquireFileLock(join(file, 'a.lock'), 60_000)).toBe(false)
  expect(await acquireFileLock(join(folder, 'x'.repeat(300)), 60_000)).toBe(false)
})

test('false where an old lock cannot be removed', async () => {
  mkdirSync(lock, { recursive: true })
  const agoS = Date.now() / 1e3 - 30
  utimesSync(lock, agoS, agoS)
  expect(await acquireFileLock(lock, 20_000)).toBe(false)
})

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ConfigError } from '../../src/config/syntax/problems.ts'
import { sealKeys } from '../../src/seal-key.ts'

const sealKey = (folder: string | undefined, log: Parameters<typeof sealKeys>[2]): Buffer | undefined =>
  sealKeys([], folder, log)[0]

let folder: string
let file: string
const warned: string[] = []
const log = { warn: (_facts: object, text: string) => void warned.push(text) }
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-key-'))
  file = join(folder, 'seal.key')
  warned.length = 0
})
afterEach(() => rmSync(folder, { recursive: true }))

const GOOD = Buffer.from(Array.from({ length: 32 }, (_, at) => at))

test('a key is made once, for its owner alone, and then kept', () => {
  const key = sealKey(folder, log)
  expect(key).toHaveLength(32)
  expect(sealKey(folder, log)).toEqual(key)
  expect(readFileSync(file)).toEqual(key)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect([readdirSync(folder), warned]).toEqual([['seal.key'], []])
})
test('processes that start at the same time have one key, the one of the file', async () => {
  const go = join(folder, 'go')
  const folders = Array.from({ length: 20 }, (_, at) => join(folder, String(at)))
  for (const each of folders) mkdirSync(each)
  const script = `
    import { existsSync, writeSync } from 'node:fs'
    import { sealKeys } from ${JSON.stringify(fileURLToPath(new URL('../../src/seal-key.ts', import.meta.url)))}
    writeSync(2, 'ready')
    while (!existsSync(${JSON.stringify(go)}));
    for (const folder of ${JSON.stringify(folders)})
      console.log(sealKeys([], folder, { warn: console.log })[0].toString('hex'))`
  const runs = Array.from({ length: 3 }, () => promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]))
  await Promise.all(runs.map(({ child }) => once(child.stderr!, 'data')))
  writeFileSync(go, '')
  const printed = await Promise.all(runs.map(async (run) => (await run).stdout))
  const kept = folders.map((each) => `${readFileSync(join(each, 'seal.key')).toString('hex')}\n`).join('')
  expect(printed).toEqual([kept, kept, kept])
  expect(folders.flatMap((each) => readdirSync(each))).toEqual(Array(20).fill('seal.key'))
})
test('without a folder it lasts as long as the process', () => {
  expect(sealKey(undefined, log)).not.toEqual(sealKey(undefined, log))
})
test.each([0o644, 0o640, 0o604, 0o620, 0o602])('T-06 a key of mode %o is refused, kept, and the remedy is named', (mode) => {
  writeFileSync(file, GOOD)
  chmodSync(file, mode)
  expect(() => sealKey(folder, log)).toThrow(ConfigError)
  expect(() => sealKey(folder, log)).toThrow(/seal\.key: is open to others \(mode 0\d{3}\); chmod 600 it/)
  chmodSync(file, 0o600)
  expect(sealKey(folder, log)).toEqual(GOOD)
})
test.each([['of a key'], ['to nothing']])('T-06 a link %s is refused and not written through', (kind) => {
  const target = join(folder, 'elsewhere')
  if (kind === 'of a key') writeFileSync(target, GOOD, { mode: 0o600 })
  symlinkSync(target, file)
  expect(() => sealKey(folder, log)).toThrow(/seal\.key: is a symbolic link; put the key itself there/)
  expect(readdirSync(folder).includes('elsewhere')).toBe(kind === 'of a key')
})
test.each([0, 0x41, 0xff])('T-06 a key of 32 times the byte %i is refused', (byte) => {
  writeFileSync(file, Buffer.alloc(32, byte), { mode: 0o600 })
  expect(() => sealKey(folder, log)).toThrow(/seal\.key: is one byte repeated.*; remove it/)
})
test('a file of another length is no key and is replaced', () => {
  writeFileSync(file, 'short', { mode: 0o600 })
  const key = sealKey(folder, log)
  expect([readFileSync(file), statSync(file).mode & 0o777]).toEqual([key, 0o600])
})

test('a configured key seals, and what the key of the state folder sealed still opens', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-key-'))
  const quiet = { warn: () => undefined }
  const configured = 'ab'.repeat(31) + 'cd'
  expect(sealKeys([configured], folder, quiet).map((key) => key.toString('hex'))).toEqual([configured])
  const own = sealKey(folder, quiet)
  expect(sealKeys([configured], folder, quiet).map((key) => key.toString('hex'))).toEqual([configured, own?.toString('hex')])
  rmSync(folder, { recursive: true, force: true })
})

test('a folder in its place is no key: this process has one of its own, and says so', () => {
  mkdirSync(file)
  expect(sealKey(folder, log)).toHaveLength(32)
  expect(warned).toEqual(['the key of sealed tokens cannot be kept (state.dir): they end with this process'])
  expect(readdirSync(folder)).toEqual(['seal.key'])
})

test.each([
  ['a file', (path: string) => writeFileSync(path, 'half')],
  ['a folder', (path: string) => mkdirSync(join(path, 'in it'), { recursive: true })],
])('what an earlier start left half done is no hindrance: %s', (_, leave) => {
  leave(`${file}.new`)
  const key = sealKey(folder, log)
  expect([readFileSync(file), warned]).toEqual([key, []])
})

test('a configured key is the only one where the state folder has none, or there is none', () => {
  const configured = 'ab'.repeat(31) + 'cd'
  expect(sealKeys([configured], folder, log)).toHaveLength(1)
  expect(sealKeys([configured], undefined, log)).toHaveLength(1)
  expect(readdirSync(folder)).toEqual([])
})

test.runIf(process.platform === 'linux')('no file stays open', () => {
  const open = () => readdirSync('/proc/self/fd').length
  writeFileSync(file, GOOD, { mode: 0o600 })
  const before = open()
  for (let times = 0; times < 5; times++) sealKey(folder, log)
  chmodSync(file, 0o644)
  for (let times = 0; times < 5; times++) expect(() => sealKey(folder, log)).toThrow(ConfigError)
  expect(open() - before).toBeLessThan(5)
})

/** Only root can become another for a moment; another one is refused anyway. */
const asAnother = <T>(act: () => T): T => {
  const own = process.geteuid?.()
  if (own === 0) process.seteuid?.(65_534)
  try {
    return act()
  } finally {
    if (own === 0) process.seteuid?.(0)
  }
}

test.runIf(process.platform === 'linux')('T-06 a key that the system does not let be read ends the start', () => {
  writeFileSync(file, GOOD, { mode: 0o000 })
  chmodSync(folder, 0o755)
  expect(() => asAnother(() => sealKey(folder, log))).toThrow(/seal\.key: cannot be read; make it yours with chown/)
})

test.runIf(process.platform === 'linux')(
  'a folder that takes no files: the key lasts as long as the process, which is said',
  () => {
    chmodSync(folder, 0o555)
    expect(asAnother(() => sealKey(folder, log))).toHaveLength(32)
    expect(warned).toEqual(['the key of sealed tokens cannot be kept (state.dir): they end with this process'])
  },
)

/** Compiled code is kept in the private state folder, and used from there only while nobody else can write it. */
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { commandLine as withCache } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'

/** Without the cache that all other tests share. */
const commandLine = async (...args: Parameters<typeof withCache>): Promise<Cli> => {
  const cli = await withCache(...args)
  delete cli.env['NODE_COMPILE_CACHE']
  return cli
}

test('the first command keeps compiled code in a folder of this user alone', async () => {
  await using cli = await commandLine()
  expect((await cli.run(['--version'])).code).toBe(0)
  const folder = cli.path('state/trunkline/compile-cache')
  expect(lstatSync(folder).mode & 0o777).toBe(0o700)
  expect(readdirSync(folder)).not.toEqual([])
})

test('a gateway that is killed has kept its compiled code for the next start', async () => {
  await using cli = await commandLine({ 'trunkline.yaml': 'version: 1\nservers: {}\n' })
  const folder = cli.path('state/trunkline/compile-cache')
  const gateway = await cli.up()
  const kept = (): number => readdirSync(folder, { recursive: true }).length
  await vi.waitFor(() => expect(kept()).toBeGreaterThan(2), { timeout: 15_000, interval: 100 })
  gateway.signal('SIGKILL')
  await gateway.ended
})

test.each<[string, (bytes: Buffer) => Buffer]>([
  ['was cut off while it was written', (bytes) => bytes.subarray(0, bytes.length / 2)],
  ['is empty', () => Buffer.alloc(0)],
  ['has other bytes', (bytes) => Buffer.alloc(bytes.length, 0xa5)],
])('a cache that %s is not used, and the command works', async (_, damage) => {
  await using cli = await commandLine()
  const usual = await cli.run(['--version'])
  const folder = cli.path('state/trunkline/compile-cache')
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  expect(files).not.toEqual([])
  for (const { parentPath, name } of files) writeFileSync(join(parentPath, name), damage(readFileSync(join(parentPath, name))))
  expect(await cli.run(['--version'])).toEqual(usual)
})

test('NODE_DISABLE_COMPILE_CACHE=1 keeps nothing', async () => {
  await using cli = await commandLine({}, { NODE_DISABLE_COMPILE_CACHE: '1' })
  expect((await cli.run(['--version'])).code).toBe(0)
  const folder = cli.path('state/trunkline/compile-cache')
  expect(existsSync(folder) ? readdirSync(folder) : []).toEqual([])
})

/** What another user of the machine could have prepared. */
const prepared: Record<string, (state: string) => string> = {
  'a folder that others may read': (state) => {
    mkdirSync(`${state}/trunkline/compile-cache`, { recursive: true })
    chmodSync(`${state}/trunkline/compile-cache`, 0o755)
    return `${state}/trunkline/compile-cache`
  },
  'a folder in one that others may write': (state) => {
    mkdirSync(`${state}/trunkline/compile-cache`, { recursive: true, mode: 0o700 })
    chmodSync(`${state}/trunkline`, 0o777)
    return `${state}/trunkline/compile-cache`
  },
  'a link': (state) => {
    mkdirSync(`${state}/elsewhere`, { recursive: true, mode: 0o700 })
    mkdirSync(`${state}/trunkline`, { mode: 0o700 })
    symlinkSync(`${state}/elsewhere`, `${state}/trunkline/compile-cache`)
    return `${state}/elsewhere`
  },
}
test.each(Object.keys(prepared))('%s is not used, and the command works', async (kind) => {
  await using cli = await commandLine()
  const folder = prepared[kind]?.(cli.path('state')) ?? ''
  expect((await cli.run(['--version'])).code).toBe(0)
  expect(readdirSync(folder)).toEqual([])
})

test('a home that cannot be written costs nothing but time', async () => {
  await using cli = await commandLine({}, { XDG_STATE_HOME: process.execPath })
  expect(await cli.run(['--version'])).toMatchObject({ code: 0, stderr: '' })
})

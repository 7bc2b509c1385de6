/** Which hosts were seen, as another process reads it. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { HostSightings, readSightings } from '../../../src/host/host-sightings.ts'

const folder = async (): Promise<string> => {
  const made = await mkdtemp(join(tmpdir(), 'tl-sightings-'))
  onTestFinished(() => rm(made, { recursive: true, force: true }))
  return made
}
const ignore = (): void => undefined
const cursor = {
  clientInfo: { name: 'cursor-vscode', version: '1.7' },
  revision: '2025-11-25',
  transport: 'stdio',
  scope: { server: undefined, toolset: 'review' },
} as const

test('a host is known from its handshake on, and the number of its tools once it has listed them', async () => {
  const state = await folder()
  await using sightings = new HostSightings(state, ignore)
  sightings.record(cursor, undefined)
  await vi.waitFor(async () => expect(await readSightings(state, 0)).toHaveLength(1))
  sightings.record(cursor, 53)
  await vi.waitFor(async () => expect(await readSightings(state, 0)).toMatchObject([{ tools: 53 }]))
  sightings.record(cursor, undefined)
  sightings.record({ ...cursor, clientInfo: { name: 'zed' } }, 1)
  await vi.waitFor(async () => expect(await readSightings(state, 0)).toHaveLength(2))
  const [first] = (await readSightings(state, 0)).filter(({ name }) => name === 'cursor-vscode')
  expect(first).toMatchObject({ version: '1.7', revision: '2025-11-25', transport: 'stdio', toolset: 'review', tools: 53 })
  expect(await readSightings(state, Date.now() + 60_000)).toEqual([])
})

test('however many names hosts make up, the number and size of files is bounded', async () => {
  const state = await folder()
  await using sightings = new HostSightings(state, ignore)
  for (let number = 0; number < 600; number++)
    sightings.record({ ...cursor, clientInfo: { name: `${number}${'x'.repeat(10_000)}`, version: { not: 'a text' } } }, number)
  sightings.record({ ...cursor, clientInfo: null }, 2_000)
  await vi.waitFor(async () => expect((await readSightings(state, 0)).map(({ tools }) => tools)).toContain(2_000), 10_000)
  const names = await readdir(join(state, 'hosts'))
  expect(names.length).toBeLessThanOrEqual(256)
  const all = await readSightings(state, 0)
  expect(Math.max(...all.map(({ name, version }) => name.length + version.length))).toBeLessThan(200)
})

test('a folder that cannot be written is said once, and a broken file is passed over', async () => {
  const state = await folder()
  await writeFile(join(state, 'hosts'), 'a file')
  const failed = vi.fn<(error: unknown) => void>()
  await using sightings = new HostSightings(state, failed)
  sightings.record(cursor, 1)
  await vi.waitFor(() => expect(failed).toHaveBeenCalledOnce())
  sightings.record(cursor, 2)
  sightings.record(cursor, 3)
  expect(await readSightings(state, 0)).toEqual([])
  const other = await folder()
  await using fine = new HostSightings(other, ignore)
  fine.record(cursor, 1)
  await vi.waitFor(async () => expect(await readSightings(other, 0)).toHaveLength(1))
  await writeFile(join(other, 'hosts', '1.json'), '{ not JSON')
  expect(await readSightings(other, 0)).toHaveLength(1)
  expect(failed).toHaveBeenCalledOnce()
})

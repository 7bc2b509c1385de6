/** Memory of process groups. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { groupMemory } from '../../../src/transport/process/group-memory.ts'

/** Files as in `/proc`, for processes of these groups. */
const processes = async (groups: Readonly<Record<number, { readonly group: number; readonly kib: number }>>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-test-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [pid, { group, kib }] of Object.entries(groups)) {
    await mkdir(join(folder, pid))
    await writeFile(join(folder, pid, 'stat'), `${pid} (a ) name) S 1 ${group} ${group} 0 -1\n`)
    await writeFile(join(folder, pid, 'status'), `Name:\ta\nVmRSS:\t${kib} kB\n`)
  }
  await mkdir(join(folder, 'net'))
  return folder
}

test('the processes of a group are summed, and other groups are left out', async () => {
  const folder = await processes({
    10: { group: 10, kib: 100 },
    11: { group: 10, kib: 50 },
    20: { group: 20, kib: 7 },
    30: { group: 30, kib: 9 },
  })
  await mkdir(join(folder, '40'))
  expect([...groupMemory(new Set([10, 20, 99]), folder)]).toEqual([
    [10, 150 * 1024],
    [20, 7 * 1024],
  ])
})

test('without a process of a server, and without /proc, there is nothing to sum', async () => {
  const folder = await processes({ 10: { group: 10, kib: 100 } })
  expect(groupMemory(new Set(), folder).size).toBe(0)
  expect(groupMemory(new Set([10]), join(folder, 'absent')).size).toBe(0)
})

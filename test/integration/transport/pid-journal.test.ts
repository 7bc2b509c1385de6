import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLauncher } from '../../../src/transport/process/launcher.ts'
import { PidJournal } from '../../../src/transport/process/pid-journal.ts'
import { sweep } from '../../../src/transport/process/pid-sweep.ts'
import { pipesOf, startTimeOf } from '../../../src/transport/process/process-table.ts'
import { startGateway } from '../../support/gateway.ts'
import { isAlive } from '../../support/pids.ts'
import { describeWith } from '../../support/programs.ts'

let folder: string
const started: ChildProcess[] = []
const left: number[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'journal-'))
})

afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
  for (const pid of left.splice(0)) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

/** A process that leads its own group and does nothing. */
const idle = async (): Promise<{ pid: number; startTime: string; child: ChildProcess }> => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' })
  started.push(child)
  await once(child, 'spawn')
  const pid = child.pid!
  return { pid, startTime: (await startTimeOf(pid))!, child }
}

/** A gateway with one child, killed the hard way. */
const killedGateway = async (path = ''): Promise<number> => {
  const script = fileURLToPath(new URL('../../support/children/killed-gateway.ts', import.meta.url))
  const gateway = spawn(process.execPath, [script, folder, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  started.push(gateway)
  const [line] = (await once(createInterface(gateway.stdout), 'line')) as [string]
  left.push(Number(line))
  gateway.kill('SIGKILL')
  await once(gateway, 'exit')
  return Number(line)
}

test('F-23 a process that ends after its journal was closed is written into no other file', async () => {
  const journal = await PidJournal.open(folder)
  journal.add({ pid: 1_000_000, startTime: '1', pipes: [] })
  journal[Symbol.dispose]()
  const path = join(folder, 'other')
  // It gets the number of the descriptor that was closed.
  const other = openSync(path, 'w')
  journal.remove(1_000_000)
  closeSync(other)
  expect(await readFile(path, 'utf8')).toBe('')
})

describe('F-23 after SIGKILL of the gateway', () => {
  test('F-23 the next start kills the child that was left and deletes the journal', async () => {
    const pid = await killedGateway()
    expect(isAlive(pid)).toBe(true)
    expect(await sweep(folder)).toBe(1)
    await expect.poll(() => isAlive(pid)).toBe(false)
    expect(await readdir(folder)).toEqual([])
    expect(await sweep(folder)).toBe(0)
  })

  test('F-23 a gateway that starts with the same state folder kills the child that was left', async () => {
    const pid = await killedGateway()
    await using gateway = await startGateway({ servers: {}, stateDir: folder })
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false)
    expect(gateway.running.configuration.stateDir).toBe(folder)
  })
})

if (process.platform === 'linux')
  describeWith(['setpriv'], 'F-23 after SIGKILL of the gateway, where the kernel is told', () => {
    test('F-23 on Linux the kernel kills the child before any sweep', async () => {
      const pid = await killedGateway(process.env['PATH'])
      await expect.poll(() => isAlive(pid), { timeout: 5000 }).toBe(false)
      expect(await sweep(folder)).toBe(0)
    })
  })

describe('F-23 the sweep touches nothing else', () => {
  const dead = 'pids-4000000-0'

  test('F-23 a process whose number is the same but whose start time is not lives on', async () => {
    const { pid } = await idle()
    await writeFile(join(folder, dead), `+${pid} 12345_other\n`)
    expect(await sweep(folder)).toBe(0)
    expect(isAlive(pid)).toBe(true)
    expect(await readdir(folder)).toEqual([])
  })

  test('F-23 a session whose leader is another process than the recorded one lives on', async () => {
    const { pid } = await idle()
    await writeFile(join(folder, dead), `+${pid} 12345_other 1,2,3\n`)
    expect(await sweep(folder)).toBe(0)
    expect(isAlive(pid)).toBe(true)
  })

  test('F-23 a process whose pipes have the numbers of pipes of an earlier boot lives on', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'pipe' })
    started.push(child)
    await once(child, 'spawn')
    const pipes = pipesOf(child.pid!).join(',')
    await writeFile(join(folder, dead), `+4000001 12345_another ${pipes}\n`)
    expect(await sweep(folder)).toBe(0)
    expect(isAlive(child.pid!)).toBe(true)
  })

  test('F-23 a child that was taken out again lives on, and so does one whose line was cut short', async () => {
    const [a, b] = [await idle(), await idle()]
    await writeFile(join(folder, dead), `+${a.pid} ${a.startTime}\n-${a.pid}\n+${b.pid} ${b.startTime}`)
    expect(await sweep(folder)).toBe(0)
    expect([a, b].map(({ pid }) => isAlive(pid))).toEqual([true, true])
  })

  test('F-23 the journal of a living gateway is left alone, that of a namesake that is dead is not', async () => {
    const child = await idle()
    using journal = await PidJournal.open(folder)
    journal.add({ pid: child.pid, startTime: child.startTime, pipes: [] })
    expect(await sweep(folder)).toBe(0)
    await writeFile(join(folder, `pids-${process.pid}-1_other`), `+${child.pid} ${child.startTime}\n`)
    const exited = once(child.child, 'exit')
    expect(await sweep(folder)).toBe(1)
    await exited
    expect(await readdir(folder)).toHaveLength(1)
  })

  test('F-23 other files, broken journals and a missing folder are no trouble', async () => {
    await writeFile(join(folder, 'seal.key'), 'x')
    await writeFile(join(folder, dead), 'garbage\n+1\n-x\n+99999999 1\n')
    expect(await sweep(folder)).toBe(0)
    expect(await readdir(folder)).toEqual(['seal.key'])
    expect(await sweep(join(folder, 'missing'))).toBe(0)
  })
})

describe('the journal', () => {
  test('is readable by us alone, follows each child, and is gone after an orderly end', async () => {
    const state = join(folder, 'state')
    const journal = await PidJournal.open(state)
    expect((await stat(state)).mode & 0o777).toBe(0o700)
    expect((await stat(journal.path)).mode & 0o777).toBe(0o600)
    const launch = createLauncher({ journal })
    const tree = await launch({ command: process.execPath, args: ['-e', 'process.stdin.resume()'], env: {}, cwd: folder })
    expect(await readFile(journal.path, 'utf8')).toMatch(
      new RegExp(`^\\+${tree.pid} ${await startTimeOf(tree.pid)}( [\\d,]+)?\\n$`),
    )
    await tree.stop()
    expect(await readFile(journal.path, 'utf8')).toMatch(new RegExp(`^\\+${tree.pid} \\w+( [\\d,]+)?\\n-${tree.pid}\\n$`))
    journal[Symbol.dispose]()
    expect(await readdir(state)).toEqual([])
  })

  test('stays small however often children come and go', async () => {
    using journal = await PidJournal.open(folder)
    journal.add({ pid: 7, startTime: 'stays', pipes: ['12', '13'] })
    for (let pid = 1000; pid < 4000; pid++) {
      journal.add({ pid, startTime: 'goes', pipes: [] })
      journal.remove(pid)
    }
    const text = await readFile(journal.path, 'utf8')
    expect(text.length).toBeLessThan(20_000)
    expect(text).toMatch(/^\+7 stays 12,13\n/)
    expect(await readdir(folder)).toHaveLength(1)
    expect((await stat(journal.path)).mode & 0o777).toBe(0o600)
  })

  test('a start time tells processes apart, is the same each time, and ends with the process', async () => {
    const { pid, startTime, child } = await idle()
    expect(await startTimeOf(pid)).toBe(startTime)
    expect(startTime).not.toBe(await startTimeOf(process.pid))
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    expect(await startTimeOf(pid)).toBeUndefined()
  })

  describeWith(['ps'], 'where there is no /proc', () => {
    test('a start time is also known', async () => {
      const { pid } = await idle()
      const startTime = await startTimeOf(pid, 'darwin')
      expect(startTime).toMatch(/^\w+$/)
      expect(await startTimeOf(pid, 'darwin')).toBe(startTime)
      expect(await startTimeOf(99_999_999, 'darwin')).toBeUndefined()
    })
  })
})

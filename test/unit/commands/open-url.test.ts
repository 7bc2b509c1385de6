/** The program that opens links is a stand-in here, in a folder that is the whole PATH. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openUrl } from '../../../src/commands/terminal/open-url.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-opener-'))
  vi.stubEnv('PATH', folder)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

test('a link is the one argument of a program in a process group of its own, and no shell reads it', async () => {
  const program = `#!/bin/sh
echo "$# $1 $$ $(/bin/ps -o pgid= -p $$)" > ${join(folder, 'part')}
/bin/mv ${join(folder, 'part')} ${join(folder, 'whole')}
`
  writeFileSync(join(folder, 'xdg-open'), program, { mode: 0o755 })
  expect(await openUrl('http://127.0.0.1/?a=1&b=$HOME', 'linux')).toBe(true)
  const said = await vi.waitFor(() => readFileSync(join(folder, 'whole'), 'utf8'), { timeout: 10_000 })
  const [count, url, pid, group] = said.trim().split(/\s+/)
  expect([count, url]).toEqual(['1', 'http://127.0.0.1/?a=1&b=$HOME'])
  expect(group).toBe(pid)
})

test('without such a program, and for a text that is not an http URL, nothing is opened', async () => {
  expect(await openUrl('http://127.0.0.1/', 'linux')).toBe(false)
  expect(await openUrl('file:///etc/passwd', 'linux')).toBe(false)
})

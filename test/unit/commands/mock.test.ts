/** What `mock` reads of a host. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { expect, onTestFinished, test, vi } from 'vitest'
import { mock } from '../../../src/commands/inspect/mock.ts'
import type { Io } from '../../../src/commands/terminal/io.ts'
import { Redactor } from '../../../src/redactor.ts'

/** Saved by an editor that writes a byte order mark. */
const recorded = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'tl-mock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'calls.ndjson')
  const call = {
    method: 'tools/call',
    request: { text: '{"params":{"name":"a\u2028b"}}' },
    response: { text: '{"result":{"n":1}}' },
  }
  writeFileSync(file, `\uFEFF{"trunkline":"recording","format":1,"tools":[]}\n${JSON.stringify(call)}\n`)
  return file
}
const serving = (stdin: Readable, interrupted = new AbortController().signal) => {
  const written: string[] = []
  const stdout = new Writable({ write: (chunk, _encoding, done) => (written.push(String(chunk)), done()) })
  // Cast: only these are used.
  const io = { stdin, stdout, stderr: new PassThrough(), interrupted, redactor: new Redactor() } as unknown as Io
  return { ended: mock(io, recorded(), {}), written }
}

const LINE = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a\u2028b' } })

test('a line separator of Unicode in a message does not end it', async () => {
  const bytes = Buffer.from(`${LINE}\r\n${LINE}`)
  const { ended, written } = serving(Readable.from([bytes.subarray(0, 70), bytes.subarray(70)]))
  expect(await ended).toBe(0)
  expect(written).toEqual(Array(2).fill('{"jsonrpc":"2.0","id":1,"result":{"n":1}}\n'))
})

test('it ends where it is interrupted', async () => {
  const interrupt = new AbortController()
  const stdin = new PassThrough()
  const { ended, written } = serving(stdin, interrupt.signal)
  for (const count of [1, 2]) {
    stdin.write(`${LINE}\n`)
    await vi.waitFor(() => expect(written).toHaveLength(count))
  }
  interrupt.abort()
  expect(await ended).toBe(0)
})

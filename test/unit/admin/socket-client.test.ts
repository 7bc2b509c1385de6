/** What the command line reads from a running process over the admin socket. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createPlainServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { FeedMessage } from '../../../src/admin/calls/calls.ts'
import { askToRelease, connectAdmin, openPipe } from '../../../src/admin/socket/client.ts'
import { OPERATOR } from '../../../src/observe/viewer.ts'

/** A process whose feed has these pieces. */
const serving = async (pieces: readonly string[]) => {
  const folder = mkdtempSync(join(tmpdir(), 'tl-socket-'))
  const server = createServer((_, response) => {
    for (const piece of pieces) response.write(piece)
    response.end()
  })
  const path = join(folder, 'x.sock')
  await new Promise<void>((resolve) => server.listen(path, resolve))
  onTestFinished(() => {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const control = await connectAdmin({ path, folder, uid: process.getuid?.() })
  const messages: FeedMessage[] = []
  const sink = { isStalled: false, send: (message: FeedMessage) => void messages.push(message) }
  const options = { viewer: OPERATOR, filter: '', after: undefined, isWhole: false }
  await control?.follow(options, sink, new AbortController().signal)
  return messages
}

test('a line separator of Unicode in a name does not end a line of the feed', async () => {
  const named = { type: 'calls', calls: [{ id: 1, name: 'a\u2028b\u2029c' }] }
  const line = `${JSON.stringify(named)}\n`
  expect(await serving([line.slice(0, 20), line.slice(20), line])).toEqual([named, named])
})

test('a line that the process did not finish is dropped', async () => {
  const gap = { type: 'gap', missed: 3 }
  expect(await serving([`${JSON.stringify(gap)}\n{"type":"ga`])).toEqual([gap])
})

/** A process that takes connections and answers nothing, as one that is stopped; `closed`: its first connection is. */
const stopped = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tl-socket-'))
  const location = { path: join(folder, 'x.sock'), folder, uid: process.getuid?.() }
  const closed = Promise.withResolvers<void>()
  const server = createPlainServer((socket) =>
    socket
      .resume()
      .on('error', () => undefined)
      .once('close', closed.resolve),
  )
  await new Promise<void>((resolve) => server.listen(location.path, resolve))
  onTestFinished(() => {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { location, none: { ...location, path: join(folder, 'y.sock') }, closed: closed.promise }
}

test('a process that takes the connection of a host and answers nothing, as one that is stopped, is told from none', async () => {
  const { location, none, closed } = await stopped()
  expect(await openPipe(location, {}, 20)).toBe('silent')
  await closed
  expect(await openPipe(none, {}, 20)).toBe('none')
})

test('no command waits for a process that is stopped, and Ctrl-C ends the wait before', async () => {
  const { location, none } = await stopped()
  await expect(connectAdmin(location, undefined, 20)).rejects.toThrow(
    'the running process has not answered for 0.02 s: it is stopped or stuck; start it again',
  )
  expect(await connectAdmin(none, undefined, 20)).toBeUndefined()
  const interrupt = new AbortController()
  const waiting = connectAdmin(location, interrupt.signal)
  interrupt.abort()
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
})

test('a start does not wait for a process that has the socket and is stopped', async () => {
  const { location } = await stopped()
  expect(await askToRelease(location, 20)).toBe(false)
})

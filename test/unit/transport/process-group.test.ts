import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { DEFAULT_STOP_TIMES, ProcessTree } from '../../../src/transport/process/process-group.ts'

test('F-10 B229 a stop ends stdin, after 2 s it sends SIGTERM and after 3 s more SIGKILL, to the group', async () => {
  vi.useFakeTimers()
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  // Cast: a tree uses no more of a child.
  const child = Object.assign(new EventEmitter(), streams) as unknown as ChildProcessWithoutNullStreams
  const tree = new ProcessTree(child, 4_711, { name: 'x', isGroup: true, stop: DEFAULT_STOP_TIMES })
  const stopped = tree.stop()
  expect(child.stdin.writableEnded).toBe(true)
  await vi.advanceTimersByTimeAsync(1_999)
  expect(kill.mock.calls).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(kill.mock.calls).toEqual([[-4_711, 'SIGTERM']])
  await vi.advanceTimersByTimeAsync(2_999)
  expect(kill).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(kill.mock.calls[1]).toEqual([-4_711, 'SIGKILL'])
  child.emit('exit', null, 'SIGKILL')
  await stopped
  expect(tree.exit).toEqual({ code: null, signal: 'SIGKILL' })
})

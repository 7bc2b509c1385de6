/** Two processes of one stdio server that share what they remember, as a gateway with a link per session starts them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectHost } from '../support/hosts.ts'
import { stdioTarget } from '../support/processes.ts'
import type { Target } from '../support/processes.ts'

describe.each(['reference-server', 'sdk1-server'] as const)('two processes of %s that share a directory', (server) => {
  let directory: string
  let target: Target
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'shared-'))
    target = stdioTarget(server, '--shared', directory)
  })
  afterAll(() => rm(directory, { recursive: true }))

  test('a tool list changed in one is announced by the other', async () => {
    await using one = await connectHost('sdk1 stdio', target)
    await using other = await connectHost('sdk1 stdio', target)
    const { promise: heard, resolve } = Promise.withResolvers<void>()
    await other.onToolsChanged(resolve)
    await one.callTool('test_trigger_tool_change')
    await heard
    expect(await other.listTools()).toContainEqual(expect.objectContaining({ name: 'extra_tool' }))
  })

  test('a resource touched in one is announced by the other', async () => {
    await using one = await connectHost('sdk1 stdio', target)
    await using other = await connectHost('sdk1 stdio', target)
    const { promise: heard, resolve } = Promise.withResolvers<string>()
    await other.onResourceUpdated('test://watched-resource', resolve)
    await one.callTool('touch_watched')
    expect(await heard).toBe('test://watched-resource')
  })

  test('a call cancelled in one is known to the other', async () => {
    await using one = await connectHost('sdk1 stdio', target)
    await using other = await connectHost('sdk1 stdio', target)
    const key = crypto.randomUUID()
    const cancel = new AbortController()
    const held = expect(one.callTool('hold', { key }, { signal: cancel.signal })).rejects.toThrow()
    await other.callTool('await_call', { key, reached: 'started' })
    cancel.abort()
    await held
    const { content } = await other.callTool('await_call', { key, reached: 'cancelled' })
    expect(content).toMatchObject([{ text: `${key} cancelled` }])
  })
})

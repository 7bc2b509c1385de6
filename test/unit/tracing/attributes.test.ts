/** What spans say of a request, by method, caller and server. */
import { expect, test } from 'vitest'
import type { Call } from '../../../src/rpc/call.ts'
import { sessionLabel } from '../../../src/rpc/session-label.ts'
import { hostAttributes, peerAttributes, serverAttributes, spanName } from '../../../src/tracing/attributes.ts'

/** Cast: what is looked at. */
const call = (facts: object): Call => facts as Call

test.each([
  ['tools/call', 'a__echo', 'tools/call a__echo', { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'a__echo' }],
  ['tools/call', undefined, 'tools/call', { 'gen_ai.operation.name': 'execute_tool' }],
  ['prompts/get', 'a__hi', 'prompts/get a__hi', { 'gen_ai.prompt.name': 'a__hi' }],
  ['resources/read', 'file:///a', 'resources/read', { 'mcp.resource.uri': 'file:///a' }],
  ['resources/subscribe', 'file:///a', 'resources/subscribe', { 'mcp.resource.uri': 'file:///a' }],
  ['resources/unsubscribe', 'file:///a', 'resources/unsubscribe', { 'mcp.resource.uri': 'file:///a' }],
  ['resources/read', undefined, 'resources/read', {}],
  ['tools/list', 'x', 'tools/list', {}],
])('of %s %s', (method, target, name, more) => {
  const request = call({ method, target })
  expect(spanName(request)).toBe(name)
  const ofServer = { 'mcp.protocol.version': '2026-07-28', 'network.transport': 'pipe', 'trunkline.server': 'a' }
  const sent = serverAttributes(request, { key: 'a', url: undefined, revision: '2026-07-28' })
  expect(sent).toEqual({ 'mcp.method.name': method, ...more, ...ofServer })
})

test('the side of the host: its id, its session by a digest, its endpoint', () => {
  const full = call({
    method: 'ping',
    ref: 7,
    caller: { revision: '2025-11-25', session: { id: 'secret' }, scope: { server: 'a' } },
    responseChannel: { hostId: '"seven"', transport: 'tcp' },
  })
  expect(hostAttributes(full, 'work')).toEqual({
    'mcp.method.name': 'ping',
    'jsonrpc.request.id': 'seven',
    'mcp.protocol.version': '2025-11-25',
    'mcp.session.id': sessionLabel('secret'),
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'trunkline.ref': 7,
    'trunkline.toolset': 'work',
    'trunkline.endpoint': 'a',
  })
  expect(sessionLabel('secret')).toMatch(/^[0-9a-f]{12}$/)
  const bare = call({ method: 'ping', ref: 8, caller: { revision: '2026-07-28', scope: {} } })
  expect(hostAttributes(bare, undefined)).toEqual({
    'mcp.method.name': 'ping',
    'mcp.protocol.version': '2026-07-28',
    'network.transport': 'pipe',
    'trunkline.ref': 8,
  })
  const numbered = call({ ...bare, responseChannel: { hostId: '12', transport: 'pipe' } })
  expect(hostAttributes(numbered, undefined)).toMatchObject({ 'jsonrpc.request.id': '12', 'network.transport': 'pipe' })
})

test.each([
  ['http://a.test:8080/mcp', 'a.test', 8080],
  ['http://a.test/mcp', 'a.test', 80],
  ['https://a.test/mcp', 'a.test', 443],
])('the side of a server at %s', (url, address, port) => {
  expect(peerAttributes(new URL(url))).toEqual({
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'server.address': address,
    'server.port': port,
  })
})

test('the side of a server on a pipe', () => {
  expect(peerAttributes(undefined)).toEqual({ 'network.transport': 'pipe' })
  expect(serverAttributes(call({ method: 'ping' }), { key: 'a', url: undefined, revision: '2025-06-18' })).toEqual({
    'mcp.method.name': 'ping',
    'mcp.protocol.version': '2025-06-18',
    'network.transport': 'pipe',
    'trunkline.server': 'a',
  })
})

import { expect, test } from 'vitest'
import { MirrorHeaders } from '../../../src/era/server/mirror-headers.ts'

test('B219 headers mirror this method and this name, whatever came before', () => {
  const mirrors = new MirrorHeaders()
  const echo = mirrors.of('tools/call', 'echo')
  expect(echo).toEqual({ 'mcp-method': 'tools/call', 'mcp-name': 'echo' })
  expect(mirrors.of('tools/call', 'echo')).toBe(echo)
  expect(mirrors.of('tools/call', 'other')).toEqual({ 'mcp-method': 'tools/call', 'mcp-name': 'other' })
  expect(mirrors.of('prompts/get', 'other')).toEqual({ 'mcp-method': 'prompts/get', 'mcp-name': 'other' })
  expect(mirrors.of('prompts/get', undefined)).toEqual({ 'mcp-method': 'prompts/get' })
})

/** Headers of modern hosts against the body (BRIDGING 5.1 rows 10 and 12; B190, B191). */
import { expect, test } from 'vitest'
import { checkMirrors, checkVersionHeader } from '../../../src/era/host/check-headers.ts'
import type { Envelope } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { META } from '../../../src/wire/protocol/meta.ts'

// Cast: what the checks read.
const messageOf = (method: string, params?: object): Envelope =>
  ({ method, params: params && Payload.of(params) }) as unknown as Envelope
const VERSION = '2026-07-28'
const inBody = (version: unknown): object => ({ _meta: { [META.version]: version } })

test.each<[string | undefined, object | undefined, object | undefined]>([
  [VERSION, inBody(VERSION), undefined],
  [VERSION, {}, undefined],
  [VERSION, undefined, undefined],
  [VERSION, inBody(7), undefined],
  [undefined, inBody(VERSION), { code: -32020, message: 'Header mismatch: the MCP-Protocol-Version header is missing' }],
  [
    VERSION,
    inBody('2025-11-25'),
    {
      code: -32020,
      status: 400,
      message: `Header mismatch: the MCP-Protocol-Version header says "${VERSION}", the body "2025-11-25"`,
    },
  ],
  ['2025-11-25', inBody('2025-11-25'), { code: -32022 }],
  ['2099-01-01', undefined, { code: -32022 }],
])('B190 the version %s beside %j is accepted, or refused with %j', (sent, params, refusal) => {
  const check = (): void => checkVersionHeader(messageOf('tools/list', params), sent)
  if (refusal === undefined) expect(check()).toBeUndefined()
  else expect(check).toThrow(expect.objectContaining(refusal))
})

const encoded = (text: string): string => `=?base64?${Buffer.from(text).toString('base64')}?=`
test.each<[string, object, Readonly<Record<string, string>>, string | undefined]>([
  ['tools/call', { name: 'x' }, { 'mcp-method': 'tools/call', 'mcp-name': 'x' }, undefined],
  ['tools/call', { name: 'é' }, { 'mcp-method': 'tools/call', 'mcp-name': encoded('é') }, undefined],
  ['resources/read', { uri: 'file:///x' }, { 'mcp-method': 'resources/read', 'mcp-name': 'file:///x' }, undefined],
  ['tools/list', {}, { 'mcp-method': 'tools/list' }, undefined],
  ['tools/list', {}, { 'mcp-method': 'tools/list', 'mcp-name': 'x' }, undefined],
  ['x/unknown', {}, { 'mcp-method': 'x/unknown' }, undefined],
  ['tools/call', { name: 'x' }, { 'mcp-name': 'x' }, 'the Mcp-Method header is missing'],
  [
    'tools/call',
    { name: 'x' },
    { 'mcp-method': 'tools/list', 'mcp-name': 'x' },
    'the Mcp-Method header says "tools/list", the body "tools/call"',
  ],
  ['tools/call', { name: 'x' }, { 'mcp-method': 'tools/call' }, 'the Mcp-Name header is missing'],
  [
    'tools/call',
    { name: 'x' },
    { 'mcp-method': 'tools/call', 'mcp-name': 'y' },
    'the Mcp-Name header says "y", the body differs',
  ],
  ['tools/call', {}, { 'mcp-method': 'tools/call', 'mcp-name': 'y' }, 'the Mcp-Name header says "y", the body differs'],
  [
    'tools/call',
    { name: 'x' },
    { 'mcp-method': 'tools/call', 'mcp-name': '=?base64?!?=' },
    'the Mcp-Name header cannot be decoded',
  ],
])('B190 B191 %s of %j with the headers %j', (method, params, headers, why) => {
  const check = (): void => checkMirrors(messageOf(method, params), (name) => headers[name])
  if (why === undefined) expect(check()).toBeUndefined()
  else expect(check).toThrow(expect.objectContaining({ code: -32020, status: 400, message: `Header mismatch: ${why}` }))
})

/** One call as text to paste: into a shell, the Inspector, a test. Every value is quoted for its target. */
import { operatorCommand } from '../../operator-command.ts'
import { memberIn, readJson, writeJson } from '../../values/json-tree.ts'

export interface Called {
  readonly method: string
  readonly name: string | null
  /** JSON text of the parameters without `_meta`. */
  readonly params: string
  /** The MCP endpoint. */
  readonly url: string
  readonly toolset: string | null
  /** True if hosts need a credential. */
  readonly hasAuth: boolean
  /** The values of `-c`. */
  readonly named: readonly string[]
}

/** For a POSIX shell. */
export const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

const REVISION = '2026-07-28'
const META = `"_meta":{"io.modelcontextprotocol/protocolVersion":"${REVISION}","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"curl","version":"8"}}`

export const asCurl = ({ method, name, params, url, hasAuth }: Called): string => {
  const inner = params.trim().slice(1, -1).trim()
  const body = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":{${inner}${inner === '' ? '' : ','}${META}}}`
  const headers = [
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `MCP-Protocol-Version: ${REVISION}`,
    `Mcp-Method: ${method}`,
    ...(name === null ? [] : [`Mcp-Name: ${headerValue(name)}`]),
  ].map((header) => `-H ${shellQuote(header)}`)
  const auth = hasAuth ? ['-H "Authorization: Bearer $TRUNKLINE_TOKEN"'] : []
  return [`curl -sS ${shellQuote(url)}`, ...headers, ...auth, `--data-raw ${shellQuote(body)}`].join(' \\\n  ')
}

/** A header contains visible ASCII only; other values are sent as base64, in the form of the specification. */
const headerValue = (name: string): string => {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(name)) return name
  const bytes = new TextEncoder().encode(name)
  return `=?base64?${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}?=`
}

/** `undefined`: there is no such form. */
export const asInspector = ({ method, name, params, url, hasAuth }: Called): string | undefined => {
  const auth = hasAuth ? ' --header "Authorization: Bearer $TRUNKLINE_TOKEN"' : ''
  const start = `npx @modelcontextprotocol/inspector --cli ${shellQuote(url)} --transport http${auth} --method ${method}`
  if (method === 'tools/call')
    return `${start} --tool-name ${shellQuote(name ?? '')} --tool-args-json ${shellQuote(argumentsOf(params))}`
  return method === 'resources/read' ? `${start} --uri ${shellQuote(name ?? '')}` : undefined
}

export const asCommand = ({ method, name, params, toolset, named }: Called): string | undefined => {
  if (method !== 'tools/call') return undefined
  const option = toolset === null ? [] : ['--toolset', toolset]
  return operatorCommand(named, 'call', name ?? '', '--args', argumentsOf(params), ...option)
}

/** A test of vitest with the official client. */
export const asTest = ({ method, name, params, url }: Called): string => {
  const request = `{ method: ${JSON.stringify(method)}, params: ${params} }`
  return `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, test } from 'vitest'

test(${JSON.stringify(`${name ?? method} answers`)}, async () => {
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(${JSON.stringify(url)})))
  const result = await client.request(${request})
  expect(result).not.toHaveProperty('isError', true)
  await client.close()
})
`
}

/** Numbers keep their spelling. */
const argumentsOf = (params: string): string => {
  const found = memberIn(readJson(params), 'arguments')
  return found === undefined ? '{}' : writeJson(found)
}

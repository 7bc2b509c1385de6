/** The admin listener of a running process, as a page and as a program use it. */
import { request } from 'node:http'
import type { Cli } from './cli.ts'

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** The body, where it is JSON. */
  readonly json: Record<string, unknown>
}

export interface Admin {
  readonly origin: string
  readonly token: string
  readonly tokenFile: string
  /** With the token, unless headers say otherwise. */
  readonly ask: (method: string, path: string, body?: object, headers?: Record<string, string>) => Promise<Answered>
}

/** One request, with exactly these headers. */
export const exchange = (
  origin: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(origin)
    const asked = request({ hostname, port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const isJson = response.headers['content-type'] === 'application/json'
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json: isJson ? (JSON.parse(text) as Record<string, unknown>) : {},
        })
      })
    })
    asked.on('error', reject)
    asked.end(body)
  })

/**
 * Whether an admin listener answers at this address. The port of one that was closed may be of another program by now, which is no HTTP
 * server and says nothing.
 */
export const isServed = (origin: string): Promise<boolean> =>
  new Promise((resolve) => {
    const asked = request(origin, { agent: false, timeout: 10_000 }, ({ headers }) => {
      resolve(headers['cross-origin-opener-policy'] !== undefined)
      asked.destroy()
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => undefined)
    asked.on('close', () => resolve(false))
    asked.end()
  })

const JSON_TYPE = { 'Content-Type': 'application/json' }

/** The link that `trunkline open` prints. */
export const openLink = async (cli: Cli): Promise<{ url: string; origin: string; tokenFile: string }> =>
  JSON.parse((await cli.here('open', '--json')).stdout) as { url: string; origin: string; tokenFile: string }

export const tradeKey = (url: string): Promise<Answered> => {
  const { origin, hash } = new URL(url)
  return exchange(origin, 'POST', '/api/session', JSON_TYPE, JSON.stringify({ key: hash.replace('#k=', '') }))
}

/** As a page does it: the link, its key for a token. */
export const openAdmin = async (cli: Cli): Promise<Admin> => {
  const { url, origin, tokenFile } = await openLink(cli)
  const token = String((await tradeKey(url)).json['token'])
  return {
    origin,
    token,
    tokenFile,
    ask: (method, path, body, headers = {}) =>
      exchange(
        origin,
        method,
        path,
        { Authorization: `Bearer ${token}`, ...(body !== undefined && JSON_TYPE), ...headers },
        body === undefined ? '' : JSON.stringify(body),
      ),
  }
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'tester', version: '9' },
}

/** One call of a modern host at the MCP endpoint; its answer as text. */
export const callTool = async (url: string, name: string, args: object, token?: string): Promise<string> => {
  const { pathname, origin } = new URL(url)
  const body = { jsonrpc: '2.0', id: 'host-1', method: 'tools/call', params: { name, arguments: args, _meta: META } }
  const { text } = await exchange(
    origin,
    'POST',
    pathname,
    {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': name,
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    },
    JSON.stringify(body),
  )
  return text
}

/** Two hosts of a flood: both call one tool after the other and take whatever comes meanwhile. */
import { Agent } from 'node:http'
import { send } from '../fakes/raw-http.ts'
import { KEY, MODERN } from '../fakes/messages.ts'

export interface FloodHost {
  /** The text of the result, or why there is none. Never rejects. */
  call(tool: string, args: object): Promise<string>
}

const LEGACY = '2025-11-25'
const CLIENT = { name: 'floods', version: '1' }

export const openModern = async (url: URL): Promise<FloodHost> => {
  const agent = new Agent({ keepAlive: true })
  const meta = { [KEY.version]: MODERN, [KEY.capabilities]: {}, [KEY.clientInfo]: CLIENT }
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call' }
  return { call: (name, args) => call(url, agent, { ...headers, 'mcp-name': name }, { name, arguments: args, _meta: meta }) }
}

/** Takes log messages and progress on the streams of its calls. */
export const openLegacy = async (url: URL): Promise<FloodHost> => {
  const agent = new Agent({ keepAlive: true })
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT }
  const welcome = await send(url, { agent, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }) })
  await welcome.body
  const headers = { 'mcp-session-id': String(welcome.headers['mcp-session-id']), 'mcp-protocol-version': LEGACY }
  const ready = await send(url, { agent, headers, body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }) })
  await ready.body
  return { call: (name, args) => call(url, agent, headers, { name, arguments: args, _meta: { progressToken: 'p' } }) }
}

const call = async (url: URL, agent: Agent, headers: Readonly<Record<string, string>>, params: object): Promise<string> => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  try {
    const reply = await send(url, { agent, headers, body })
    const whole = await reply.body
    await reply.closed
    const text = whole === '' ? (reply.events.entries.at(-1)?.data ?? '') : whole
    return (JSON.parse(text) as { result: { content: { text: string }[] } }).result.content[0]!.text
  } catch (error) {
    return String(error)
  }
}

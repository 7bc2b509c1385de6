/**
 * `node scripts/many.ts [--sessions N] [--calls N] [--servers N] [--hold SECONDS]`: the maximum load of one process:
 * idle sessions, each with an open stream, then calls in flight over servers on pipes, each of which must return its own
 * answer. Exits with 1 if a session or a call was lost, or an answer was crossed.
 */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { parseArgs } from 'node:util'
import { gatewayHome, startGatewayProcess } from '../test/support/gateway-process.ts'

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '1000' },
    calls: { type: 'string', default: '1000' },
    servers: { type: 'string', default: '50' },
    hold: { type: 'string', default: '30' },
  },
})
const [sessions, calls, servers, holdSeconds] = [values.sessions, values.calls, values.servers, values.hold].map(Number) as [
  number,
  number,
  number,
  number,
]
const SPARE = 1_000
/** How many requests are begun together. */
const AT_ONCE = 200
const KIB = 1024

const server = { command: process.execPath, args: [new URL('../test/support/children/holding.ts', import.meta.url).pathname] }
await using home = await gatewayHome()
const file = await home.write('many', {
  servers: Object.fromEntries(Array.from({ length: servers }, (_, at) => [`s${at}`, server])),
  listen: { limits: { connections: Math.max(sessions, calls) + SPARE, sessions: sessions + SPARE, in_flight: calls + SPARE } },
  telemetry: { log: { level: 'error' } },
})
await using gateway = await startGatewayProcess(file)
const url = new URL(gateway.url)

const rssKiB = (): number => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1] ?? 0)
const descriptors = (): number => readdirSync(`/proc/${gateway.pid}/fd`).length
const state = (): string => `rss ${Math.round(rssKiB() / KIB)} MiB, descriptors ${descriptors()}`

const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
const send = (method: string, headers: OutgoingHttpHeaders, body?: object): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const sent = request({ host: url.hostname, port: url.port, path: url.pathname, method, agent, headers })
    sent.on('response', resolve).on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
const POST = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
const textOf = async (answer: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) text += chunk as string
  return text
}
/** Runs `one` for 0 to `count`, some at a time. */
const each = async (count: number, one: (at: number) => Promise<void>): Promise<void> => {
  for (let from = 0; from < count; from += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, at) => one(from + at)))
}

let faults = 0
const fault = (what: string): void => {
  faults++
  console.log(what)
}

const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'many', version: '1' } }
const open = async (): Promise<IncomingMessage> => {
  const welcome = await send('POST', POST, { jsonrpc: '2.0', id: 1, method: 'initialize', params })
  const session = { 'Mcp-Session-Id': String(welcome.headers['mcp-session-id']) }
  await textOf(welcome)
  const stream = await send('GET', { ...session, Accept: 'text/event-stream' })
  if (stream.statusCode !== 200) fault(`a session has no stream: HTTP ${stream.statusCode}`)
  return stream.on('error', () => undefined)
}

const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
const listed = async (): Promise<number> => {
  const headers = { ...POST, 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' }
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: META } }
  return (await textOf(await send('POST', headers, list))).split('__hold').length - 1
}
while ((await listed()) < servers) await new Promise((resolve) => setTimeout(resolve, 200))

console.log(`with ${servers} servers: ${state()}`)
const base = rssKiB()
const streams: IncomingMessage[] = []
await each(sessions, async () => void streams.push(await open()))
console.log(`${sessions} idle sessions, each with its stream: ${state()}, ${((rssKiB() - base) / sessions).toFixed(1)} KiB each`)
const broken = streams.filter(({ destroyed }) => destroyed).length
if (broken > 0) fault(`${broken} streams broke`)
await Promise.all(streams.map((stream) => once(stream.destroy(), 'close')))

const until = Date.now() + holdSeconds * 1_000
let begun = 0
let answered = 0
const call = async (at: number): Promise<void> => {
  const name = `s${at % servers}__hold`
  const nonce = `nonce-${at}-${Math.random().toString(36).slice(2)}`
  const headers = { ...POST, 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': name }
  const answer = send('POST', headers, {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: { nonce, until }, _meta: META },
  })
  begun++
  const text = await textOf(await answer)
  answered++
  if (!text.includes(`"${nonce}"`)) fault(`not its own answer: ${text.slice(0, 300)}`)
}
const pending: Promise<void>[] = []
for (let at = 0; at < calls; at++) {
  pending.push(call(at).catch((error: unknown) => fault(`a call was lost: ${String(error)}`)))
  if (at % AT_ONCE === 0) await new Promise((resolve) => setTimeout(resolve, 10))
}
await new Promise((resolve) => setTimeout(resolve, Math.max(0, until - Date.now() - 500)))
const inFlight = begun - answered
console.log(`${inFlight} calls in flight over ${servers} servers: ${state()}`)
if (inFlight < calls) fault(`only ${inFlight} of ${calls} were in flight at one time: raise --hold`)
await Promise.all(pending)
agent.destroy()
console.log(`${answered} answered, each with its own; afterwards ${state()}`)
console.log(`exit ${await gateway.stop()}, faults ${faults}`)
process.exitCode = faults === 0 ? 0 : 1

/**
 * A server on pipes that floods, written by hand and sharing no code with `src/`: `flooding-server.ts [LIST_BYTES]`. Legacy.
 *
 * - `logs` {count}: so many log messages as fast as the pipe takes them, then the answer
 * - `progress` {count}: the same with progress
 * - `changes` {forMs}: `list_changed` ten times a second; the list has about LIST_BYTES
 * - `echo` {}: answers at once
 */
import { once } from 'node:events'
import { createInterface } from 'node:readline'

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: {
    readonly name?: string
    readonly protocolVersion?: string
    readonly arguments?: { readonly count?: number; readonly forMs?: number }
    readonly _meta?: { readonly progressToken?: number }
  }
}

const TOOL_BYTES = 4_000
const listBytes = Number(process.argv[2] ?? 0)
const NAMES = ['logs', 'progress', 'changes', 'echo']
const named = (name: string, description: string): object => ({ name, description, inputSchema: { type: 'object' } })
const tools = [
  ...NAMES.map((name) => named(name, name)),
  ...Array.from({ length: Math.floor(listBytes / TOOL_BYTES) }, (_, at) => named(`t${at}`, 'x'.repeat(TOOL_BYTES))),
]

const write = async (text: string): Promise<void> => {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}
const say = (message: object): Promise<void> => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const repeat = async (count: number, message: object): Promise<void> => {
  const block = `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`.repeat(100)
  for (let sent = 0; sent < count; sent += 100) await write(block)
}

const call = async ({ name, arguments: { count = 0, forMs = 0 } = {}, _meta }: NonNullable<Message['params']>): Promise<void> => {
  if (name === 'logs') await repeat(count, { method: 'notifications/message', params: { level: 'error', data: 'flooding' } })
  const { progressToken } = _meta ?? {}
  if (name === 'progress') await repeat(count, { method: 'notifications/progress', params: { progressToken, progress: 1 } })
  if (name !== 'changes') return
  for (const untilMs = performance.now() + forMs; performance.now() < untilMs;) {
    await say({ method: 'notifications/tools/list_changed' })
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const answer = async ({ method, params = {} }: Message): Promise<object> => {
  if (method === 'initialize') {
    const capabilities = { tools: { listChanged: true }, logging: {} }
    return { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: 'flooding', version: '1' } }
  }
  if (method === 'tools/list') return { tools }
  if (method === 'tools/call') {
    await call(params)
    return { content: [{ type: 'text', text: 'done' }] }
  }
  return {}
}

createInterface(process.stdin)
  .on('line', (line) => {
    const message = JSON.parse(line) as Message
    if (message.id !== undefined && message.method !== undefined)
      void answer(message).then((result) => say({ id: message.id, result }))
  })
  .on('close', () => process.exit(0))

/** A server on pipes whose one tool answers with its `nonce` when the wall clock says `until`, and not before. */
import { createInterface } from 'node:readline'

interface Request {
  readonly id?: number
  readonly method: string
  readonly params: { readonly arguments: { readonly nonce: string; readonly until: number } }
}

const answer = (id: number | undefined, result: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)

const serverInfo = { name: 'holding', version: '1' }
const tools = [{ name: 'hold', inputSchema: { type: 'object' } }]

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line) as Request
  if (method === 'initialize') answer(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo })
  else if (method === 'tools/list') answer(id, { tools })
  else if (method === 'tools/call') {
    const { nonce, until } = params.arguments
    setTimeout(() => answer(id, { content: [{ type: 'text', text: nonce }] }), Math.max(0, until - Date.now()))
  } else if (id !== undefined)
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } })}\n`)
})

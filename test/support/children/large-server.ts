/**
 * A server on a pipe whose texts are large and hostile: `all` is described by a megabyte and answers ten, as a
 * text, a tree or blocks. With a file as argument its description begins with the text of that file. Shares no code with `src/`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly protocolVersion?: string; readonly arguments?: { readonly as?: string } }
}

const [wordsFile = ''] = process.argv.slice(2)
const say = (message: object): void => void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const HOSTILE = '<img src=x onerror="document.title=1"> \u001b[31mred\u001b[0m \u202eturned\u202c '
const MEGABYTE = 1_000_000
const hostileOf = (bytes: number): string => HOSTILE.repeat(Math.ceil(bytes / Buffer.byteLength(HOSTILE)))
const treeOf = (bytes: number): object => Array.from({ length: bytes / 50 }, (_, at) => ({ at, words: '<b>W</b>'.repeat(3) }))

const tools = (): object[] => {
  const words = existsSync(wordsFile) ? readFileSync(wordsFile, 'utf8') : ''
  const properties = {
    as: { type: 'string', description: hostileOf(MEGABYTE / 10) },
    kind: { enum: Array.from({ length: 5_000 }, (_, at) => `${at} ${'W'.repeat(40)}`) },
  }
  return [
    {
      name: 'all',
      description: `${words}All of it. ${hostileOf(MEGABYTE)}`,
      inputSchema: { type: 'object', properties },
      annotations: { readOnlyHint: true },
    },
  ]
}

const resultOf = (as: string | undefined): object =>
  as === 'tree'
    ? { content: [], structuredContent: { rows: treeOf(10 * MEGABYTE) } }
    : as === 'blocks'
      ? { content: Array.from({ length: 20_000 }, (_, at) => ({ type: 'text', text: `${at} ${HOSTILE}` })) }
      : { content: [{ type: 'text', text: hostileOf(10 * MEGABYTE) }] }

process.stderr.write(`${hostileOf(MEGABYTE / 10)}\n`)
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line) as Message
  if (id === undefined) return
  const serverInfo = { name: 'large', version: '1' }
  if (method === 'initialize')
    return say({ id, result: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo } })
  if (method === 'tools/list') return say({ id, result: { tools: tools() } })
  if (method === 'tools/call') return say({ id, result: resultOf(params?.arguments?.as) })
  return say(method === 'ping' ? { id, result: {} } : { id, error: { code: -32601, message: 'Method not found' } })
})

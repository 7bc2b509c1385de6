/**
 * A raw MCP server on stdin and stdout, legacy era: `node bench/stdio-server.ts healthy|hang|exit|flap|change [TOOLS]`. `hang` reads and
 * never answers, `exit` ends at once, `flap` ends soon after each handshake, and the list of `change` changes ten times a second and reports how
 * often it was read.
 */
import { createAnswers, errorPieces, type Request } from './answers.ts'

const FLAP_MS = 300
const CHANGE_MS = 100

const behaviour = process.argv[2] ?? 'healthy'
if (behaviour === 'exit') process.exit(1)
let changes = 0
let reads = 0
const news = () => `Changed ${changes} times, read ${++reads} times.`
const answer = createAnswers('legacy', Number(process.argv[3] ?? 0), behaviour === 'change' ? news : undefined)

const change = () => {
  changes++
  process.stdout.write('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
}

const serve = (line: string) => {
  const request = JSON.parse(line) as Request
  if (behaviour === 'flap' && request.method === 'notifications/initialized') setTimeout(() => process.exit(1), FLAP_MS)
  if (behaviour === 'change' && request.method === 'notifications/initialized') setInterval(change, CHANGE_MS)
  if (behaviour === 'hang' || request.id === undefined) return
  process.stdout.cork()
  for (const piece of answer(request) ?? errorPieces(request.id, -32601, 'Method not found'))
    process.stdout.write(piece, 'latin1')
  process.stdout.write('\n')
  process.stdout.uncork()
}

let rest = ''
process.stdin.setEncoding('utf8').on('data', (text: string) => {
  const lines = (rest + text).split('\n')
  rest = lines.pop() ?? ''
  for (const line of lines) serve(line)
})
